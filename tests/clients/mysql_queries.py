"""Runs queries by the MySQL protocol over several connections, and prints each answer as it came.

Arguments: port, connections, statements that each connection begins with, separated by semicolons.
Standard input: a JSON line {"id", "sql"} for each query. Standard output: a JSON line for each answer, {"id", "error"}
or {"id", "columns", "rows"}. A cell is null, a string that has a character for each byte, or for a column of type
JSON {"text", "json": value}, where numbers are strings (to keep their digits) and an object is {"pairs": [[key, value],
...]}.
"""

import json
import queue
import sys
import threading

import pymysql
from pymysql.converters import encoders

port, connections, begin = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
JSON_TYPE = 245

todo = queue.Queue()
for line in sys.stdin:
    todo.put(json.loads(line))
lock = threading.Lock()


def cell(value, is_json):
    if value is None:
        return None
    if is_json:
        decoded = json.loads(
            value,
            parse_int=str,
            parse_float=str,
            parse_constant=str,
            object_pairs_hook=lambda pairs: {"pairs": pairs},
        )
        return {"json": decoded, "text": value.decode()}
    return value.decode("latin-1")


def answer(cursor, sql):
    try:
        cursor.execute(sql)
        json_columns = [column[1] == JSON_TYPE for column in cursor.description]
        names = [column[0] for column in cursor.description]
        rows = [[cell(v, j) for v, j in zip(row, json_columns)] for row in cursor.fetchall()]
        return {"columns": names, "rows": rows}
    except pymysql.MySQLError as error:
        return {"error": str(error)}
    except ValueError as error:
        return {"error": f"the answer cannot be read: {error}"}


def connect():
    connection = pymysql.connect(host="127.0.0.1", port=port, user="root", conv=encoders, use_unicode=False)
    with connection.cursor() as cursor:
        for statement in begin.split(";"):
            cursor.execute(statement)
    return connection


def work():
    connection = connect()
    while True:
        try:
            query = todo.get_nowait()
        except queue.Empty:
            return
        if not connection.open:
            connection = connect()
        with connection.cursor() as cursor:
            found = json.dumps({"id": query["id"], **answer(cursor, query["sql"])})
        with lock:
            print(found, flush=True)


threads = [threading.Thread(target=work) for _ in range(connections)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
