"""Prints the error code of a query that passes its timeout.

usage: timeout.py MYSQL_PORT SQL
"""

import sys

import pymysql

connection = pymysql.connect(host="127.0.0.1", port=int(sys.argv[1]), user="root")
with connection.cursor() as cursor:
    cursor.execute("SET query_timeout = 2")
    try:
        cursor.execute(sys.argv[2])
        sys.exit("it did not time out")
    except pymysql.err.Error as error:
        print(error.args[0])
    cursor.execute("SELECT 1")
    assert cursor.fetchone() == (1,), "the connection goes on after a timeout"
