"""Starts a query, and closes the connection as soon as another connection sees it run.

usage: disconnect.py MYSQL_PORT SQL
"""

import struct
import sys
import time

import pymysql

port, sql = int(sys.argv[1]), sys.argv[2]
connection = pymysql.connect(host="127.0.0.1", port=port, user="root")
watcher = pymysql.connect(host="127.0.0.1", port=port, user="root")
payload = b"\x03" + sql.encode()
connection._sock.sendall(struct.pack("<I", len(payload))[:3] + b"\x00" + payload)
with watcher.cursor() as cursor:
    for _ in range(1200):
        cursor.execute("SELECT coalesce(sum(running_tasks), 0) FROM tarn.system.workers")
        if cursor.fetchone()[0] >= 1:
            break
        time.sleep(0.05)
    else:
        sys.exit("the query never ran")
connection._sock.close()
