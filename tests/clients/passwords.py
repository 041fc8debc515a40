"""Both Python MySQL clients log in with the right password, and get 1045 with a wrong or empty one.

usage: passwords.py MYSQL_PORT USER PASSWORD
"""

import sys

import mysql.connector
import pymysql

port, user, password = int(sys.argv[1]), sys.argv[2], sys.argv[3]
for wrong in ("", "x", password + " "):
    for connect in (pymysql.connect, mysql.connector.connect):
        try:
            connect(host="127.0.0.1", port=port, user=user, password=wrong)
            sys.exit(f"{connect.__module__} was let in with {wrong!r}")
        except (pymysql.err.OperationalError, mysql.connector.Error) as error:
            assert error.args[0] == 1045, error.args
pymysql.connect(host="127.0.0.1", port=port, user=user, password=password).close()
mysql.connector.connect(host="127.0.0.1", port=port, user=user, password=password).close()
print("ok")
