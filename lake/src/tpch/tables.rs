//! The tables: columns as the specification names them (TPC-H 3.0.1, section 1.4), sizes, and how they are cut.

use std::sync::Arc;

use crate::columns::{Column, Kind};
use crate::load::{Chunk, Table};

use super::rows;

const MONEY: Kind = Kind::Decimal { precision: 15 };

const REGION: &[Column] = &[
    ("r_regionkey", Kind::Long, false),
    ("r_name", Kind::Text, false),
    ("r_comment", Kind::Text, false),
];

const NATION: &[Column] = &[
    ("n_nationkey", Kind::Long, false),
    ("n_name", Kind::Text, false),
    ("n_regionkey", Kind::Long, false),
    ("n_comment", Kind::Text, false),
];

const PART: &[Column] = &[
    ("p_partkey", Kind::Long, false),
    ("p_name", Kind::Text, false),
    ("p_mfgr", Kind::Text, false),
    ("p_brand", Kind::Text, false),
    ("p_type", Kind::Text, false),
    ("p_size", Kind::Int, false),
    ("p_container", Kind::Text, false),
    ("p_retailprice", MONEY, false),
    ("p_comment", Kind::Text, false),
];

const SUPPLIER: &[Column] = &[
    ("s_suppkey", Kind::Long, false),
    ("s_name", Kind::Text, false),
    ("s_address", Kind::Text, false),
    ("s_nationkey", Kind::Long, false),
    ("s_phone", Kind::Text, false),
    ("s_acctbal", MONEY, false),
    ("s_comment", Kind::Text, false),
];

const PARTSUPP: &[Column] = &[
    ("ps_partkey", Kind::Long, false),
    ("ps_suppkey", Kind::Long, false),
    ("ps_availqty", Kind::Int, false),
    ("ps_supplycost", MONEY, false),
    ("ps_comment", Kind::Text, false),
];

const CUSTOMER: &[Column] = &[
    ("c_custkey", Kind::Long, false),
    ("c_name", Kind::Text, false),
    ("c_address", Kind::Text, false),
    ("c_nationkey", Kind::Long, false),
    ("c_phone", Kind::Text, false),
    ("c_acctbal", MONEY, false),
    ("c_mktsegment", Kind::Text, false),
    ("c_comment", Kind::Text, false),
];

const ORDERS: &[Column] = &[
    ("o_orderkey", Kind::Long, false),
    ("o_custkey", Kind::Long, false),
    ("o_orderstatus", Kind::Text, false),
    ("o_totalprice", MONEY, false),
    ("o_orderdate", Kind::Date, false),
    ("o_orderpriority", Kind::Text, false),
    ("o_clerk", Kind::Text, false),
    ("o_shippriority", Kind::Int, false),
    ("o_comment", Kind::Text, false),
];

const LINEITEM: &[Column] = &[
    ("l_orderkey", Kind::Long, false),
    ("l_partkey", Kind::Long, false),
    ("l_suppkey", Kind::Long, false),
    ("l_linenumber", Kind::Int, false),
    ("l_quantity", MONEY, false),
    ("l_extendedprice", MONEY, false),
    ("l_discount", MONEY, false),
    ("l_tax", MONEY, false),
    ("l_returnflag", Kind::Text, false),
    ("l_linestatus", Kind::Text, false),
    ("l_shipdate", Kind::Date, false),
    ("l_commitdate", Kind::Date, false),
    ("l_receiptdate", Kind::Date, false),
    ("l_shipinstruct", Kind::Text, false),
    ("l_shipmode", Kind::Text, false),
    ("l_comment", Kind::Text, false),
];

/// Rows of a chunk: large enough to keep the seeking of the generators cheap, small enough for memory.
const CHUNK_ROWS: u64 = 60_000;
/// Large tables come in about this many files, so that there is something to divide among workers.
const FILES: u64 = 8;
const LEAST_FILE_ROWS: u64 = 5_000;

/// The part `part` of `parts`, as `tpchgen` counts them (from 1).
type Generate = fn(scale: f64, part: i32, parts: i32) -> Chunk;

struct Plan {
    name: &'static str,
    columns: &'static [Column],
    /// Rows at scale factor 1; `None` if the table is of one size.
    rows: Option<u64>,
    fixed_rows: u64,
    /// Bytes of a row in Arrow's form, about.
    row_bytes: u64,
    generate: Generate,
}

const PLANS: &[Plan] = &[
    Plan {
        name: "region",
        columns: REGION,
        rows: None,
        fixed_rows: 5,
        row_bytes: 80,
        generate: rows::region,
    },
    Plan {
        name: "nation",
        columns: NATION,
        rows: None,
        fixed_rows: 25,
        row_bytes: 100,
        generate: rows::nation,
    },
    Plan {
        name: "supplier",
        columns: SUPPLIER,
        rows: Some(10_000),
        fixed_rows: 0,
        row_bytes: 180,
        generate: rows::supplier,
    },
    Plan {
        name: "customer",
        columns: CUSTOMER,
        rows: Some(150_000),
        fixed_rows: 0,
        row_bytes: 200,
        generate: rows::customer,
    },
    Plan {
        name: "part",
        columns: PART,
        rows: Some(200_000),
        fixed_rows: 0,
        row_bytes: 170,
        generate: rows::part,
    },
    Plan {
        name: "partsupp",
        columns: PARTSUPP,
        rows: Some(800_000),
        fixed_rows: 0,
        row_bytes: 170,
        generate: rows::partsupp,
    },
    Plan {
        name: "orders",
        columns: ORDERS,
        rows: Some(1_500_000),
        fixed_rows: 0,
        row_bytes: 150,
        generate: rows::orders,
    },
    Plan {
        name: "lineitem",
        columns: LINEITEM,
        rows: Some(6_001_215),
        fixed_rows: 0,
        row_bytes: 210,
        generate: rows::lineitem,
    },
];

/// The tables at a scale, smallest first.
pub(super) fn tables(scale: f64) -> Vec<Table> {
    PLANS
        .iter()
        .map(|plan| {
            let rows = plan
                .rows
                .map_or(plan.fixed_rows, |rows| (rows as f64 * scale).round() as u64);
            let chunks = rows.div_ceil(CHUNK_ROWS).max(1);
            let generate = plan.generate;
            Table {
                name: plan.name,
                columns: plan.columns,
                partition: Vec::new(),
                mark: format!("tpch scale={scale} version=1"),
                rows,
                chunks,
                file_rows: rows.div_ceil(FILES).max(LEAST_FILE_ROWS),
                row_bytes: plan.row_bytes,
                chunk: Arc::new(move |i| generate(scale, i as i32 + 1, chunks as i32)),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(name: &str, scale: f64) -> usize {
        let table = tables(scale).into_iter().find(|t| t.name == name).unwrap();
        (0..table.chunks).map(|i| (table.chunk)(i)[0].len()).sum()
    }

    #[test]
    fn the_counts_are_those_of_the_specification() {
        for (name, rows) in [
            ("region", 5),
            ("nation", 25),
            ("supplier", 100),
            ("customer", 1_500),
            ("part", 2_000),
            ("partsupp", 8_000),
            ("orders", 15_000),
            ("lineitem", 60_175),
        ] {
            assert_eq!(count(name, 0.01), rows, "{name}");
        }
    }

    #[test]
    fn columns_have_the_declared_types() {
        for table in tables(0.001) {
            let schema = crate::columns::schema(table.name, table.columns).unwrap();
            let schema = iceberg::arrow::schema_to_arrow_schema(&schema).unwrap();
            let types: Vec<_> = schema
                .fields()
                .iter()
                .map(|f| f.data_type().clone())
                .collect();
            let built: Vec<_> = (table.chunk)(0)
                .iter()
                .map(|c| c.data_type().clone())
                .collect();
            assert_eq!(built, types, "{}", table.name);
        }
    }

    #[test]
    fn chunks_do_not_change_the_rows() {
        let whole = rows::orders(0.01, 1, 1);
        let last = rows::orders(0.01, 4, 4);
        let tail = whole[0].slice(whole[0].len() - last[0].len(), last[0].len());
        assert_eq!(&tail, &last[0]);
    }
}
