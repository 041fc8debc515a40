"""Random queries over tables, each in both dialects, and smaller ones of the same kind."""

import copy
from dataclasses import dataclass, field

from .predicates import Condition, Conditions, duck_column, tarn_column
from .schema import Column, List, Map, Primitive, columns


@dataclass
class Output:
    """An expression of the select list. `type` is that of a column whose very values and type are asked for, else None."""

    tarn: str
    duck: str
    type: object = None


@dataclass
class Query:
    tables: list  # (name in Tarn, name in DuckDB, alias, time travel)
    outputs: list
    join: tuple = ()  # the two sides of the ON, and the kind of join
    where: Condition | None = None
    group: list = field(default_factory=list)
    order: list = field(default_factory=list)
    limit: tuple = ()
    protocol: str = "flight"
    states: list = field(default_factory=list)  # what is read: tables, with a snapshot's number or "now"

    def sql(self, dialect):
        n = 0 if dialect == "tarn" else 1

        def pick(output):
            return output.tarn if n == 0 else output.duck

        names = [f"{t[n]} {t[3] if n == 0 else ''} {t[2]}".replace("  ", " ") for t in self.tables]
        sql = "SELECT " + ", ".join(f"{pick(output)} AS o{i}" for i, output in enumerate(self.outputs)) + f" FROM {names[0]}"
        if len(names) > 1:
            left, right, kind = self.join
            sql += f" {kind} {names[1]} ON {pick(left)} = {pick(right)}"
        if self.where:
            sql += f" WHERE {self.where.sql(dialect)}"
        if self.group:
            sql += " GROUP BY " + ", ".join(map(pick, self.group))
        if self.order:
            sql += " ORDER BY " + ", ".join(f"{pick(output)} {direction}" for output, direction in self.order)
        if self.limit:
            sql += f" LIMIT {self.limit[0]} OFFSET {self.limit[1]}"
        return sql

    def smaller(self):
        if self.where:
            yield self.changed(where=None)
            for less in self.where.smaller():
                yield self.changed(where=less)
        if len(self.outputs) > 1 and not self.group:
            for n in range(len(self.outputs)):
                yield self.changed(outputs=[self.outputs[n]])
        if self.group:
            for n in range(len(self.group), len(self.outputs)):
                yield self.changed(outputs=[*self.outputs[: len(self.group)], self.outputs[n]])
        if self.limit:
            yield self.changed(limit=())
        elif self.order:
            yield self.changed(order=[])

    def changed(self, **changes):
        other = copy.copy(self)
        for name, value in changes.items():
            setattr(other, name, value)
        return other


INTEGERS = ("int", "long")
FLOATS = ("float", "double")


class Queries:
    def __init__(self, rng, table, other, options):
        self.rng, self.table, self.other, self.options = rng, table, other, options

    def query(self):
        rng, model = self.rng, self.table.model
        fields, rows, state, travel = model.fields, model.rows(), "now", ""
        if self.options.time_travel and rng.random() < 0.2:
            state = rng.randrange(len(model.history))
            snapshot, fields, _ = model.history[state]
            rows, travel = model.rows_at(state), f"FOR VERSION AS OF {snapshot}"
        found = list(columns(fields))
        self.all, self.plain = found, [c for c in found if isinstance(c.type, Primitive)]
        self.conditions = Conditions(rng, found, rows, "t")
        query = Query([(self.table.name, f"{self.table.duck}_{state}", "t", travel)], [], states=[(self.table, state)])
        if rng.random() < 0.8:
            query.where = self.conditions.condition()
        kind = rng.choices(["rows", "aggregate", "top", "join"], [4, 3, 2, 1.5])[0]
        {"rows": self.rows, "aggregate": self.aggregate, "top": self.top, "join": self.join}[kind](query)
        if rng.random() < 0.1 and all(o.type is None or isinstance(o.type, Primitive) for o in query.outputs):
            query.protocol = "mysql"
        return query

    def output(self, column, alias="t"):
        return Output(tarn_column(column, alias), duck_column(column, alias), column.type)

    def item(self, column):
        """A column, or an element of a list or map in it."""
        output, type_ = self.output(column), column.type
        if isinstance(type_, List) and self.rng.random() < 0.4:
            n = self.rng.randint(1, 3)
            return Output(f"{output.tarn}[{n}]", f"{output.duck}[{n}]", type_.element.type)
        if isinstance(type_, Map) and type_.key.type.kind == "string" and self.rng.random() < 0.4:
            return Output(f"{output.tarn}['a']", f"{output.duck}['a']", type_.value.type)
        return output

    def rows(self, query):
        if self.rng.random() < 0.15:
            query.outputs = [self.output(Column([f])) for f in self.table_fields()]
        else:
            picked = self.rng.sample(self.all, self.rng.randint(1, min(4, len(self.all))))
            query.outputs = [self.item(column) for column in picked]

    def table_fields(self):
        return [c.path[0] for c in self.all if len(c.path) == 1]

    def aggregates(self, query):
        outputs = [Output("count(*)", "count(*)")]
        for _ in range(self.rng.randint(0, 3)):
            column = self.rng.choice(self.plain)
            output, kind = self.output(column), column.type.kind
            choices = ["count({})", "count(DISTINCT {})"]
            if kind not in ("uuid", "fixed"):
                choices += ["min({})", "max({})"] * 2
            if kind == "int" or kind == "decimal" and column.type.precision < 20:
                choices += ["sum({})"] * 2
            form = self.rng.choice(choices)
            duck = form.format(output.duck)
            if kind == "int" and "sum" in form:
                duck = f"CAST({duck} AS DECIMAL(38, 0))"  # DuckDB's 128-bit integers come as doubles.
            outputs.append(Output(form.format(output.tarn), duck))
        if self.rng.random() < 0.2 and not query.group:
            outputs = outputs[1:] or outputs
        return outputs

    def aggregate(self, query):
        if self.rng.random() < 0.5:
            sources = {f.source for spec in self.table.model.specs.values() for f in spec}
            keys = self.plain
            partitioned = [c for c in keys if c.leaf.id in sources]
            picked = self.rng.choice(partitioned if partitioned and self.rng.random() < 0.6 else keys)
            key = self.output(picked)
            # Which of the zeros and NaNs of a group is shown is the engine's own business.
            query.group = [Output(key.tarn, key.duck) if picked.type.kind in FLOATS else key]
        query.outputs = query.group + self.aggregates(query)

    def top(self, query):
        uid = self.output(next(c for c in self.all if c.leaf.id == self.table.model.uid))
        direction = self.rng.choice(["", "ASC", "DESC"])
        query.order = [(uid, direction)]
        if self.rng.random() < 0.6:
            first = self.rng.choice([c for c in self.plain if c.type.kind not in FLOATS])
            nulls = self.rng.choice(["ASC NULLS FIRST", "ASC NULLS LAST", "DESC NULLS FIRST", "DESC NULLS LAST"])
            query.order.insert(0, (self.output(first), nulls))
        picked = self.rng.sample(self.all, self.rng.randint(0, min(2, len(self.all))))
        query.outputs = [uid, *(self.output(c) for c in picked)]
        query.limit = (self.rng.choice([1, 3, 10, 100]), self.rng.choice([0, 0, 2]))

    def join(self, query):
        """With another table, or with itself, over columns of one type."""
        other = self.other if self.other and self.rng.random() < 0.7 else self.table
        theirs = [c for c in columns(other.model.fields) if isinstance(c.type, Primitive)]
        pairs = [(a, b) for a in self.plain for b in theirs if joinable(a.type, b.type)]
        left, right = self.rng.choice(pairs)
        query.tables.append((other.name, f"{other.duck}_now", "u", ""))
        query.states.append((other, "now"))
        query.join = (self.output(left), self.output(right, "u"), self.rng.choice(["JOIN", "JOIN", "LEFT JOIN"]))
        uid = next(c for c in theirs if c.leaf.id == other.model.uid)
        if self.rng.random() < 0.5:
            greatest = Output(f"max({tarn_column(uid, 'u')})", f"max({duck_column(uid, 'u')})")
            query.outputs = [Output("count(*)", "count(*)"), greatest]
        else:
            query.outputs = [self.output(self.rng.choice(self.plain)), self.output(uid, "u")]
        if not query.where:
            # Otherwise a product of the two may be large.
            query.where = self.conditions.condition(1)


def joinable(a, b):
    return a == b and a.kind != "boolean" or a.kind in INTEGERS and b.kind in INTEGERS


