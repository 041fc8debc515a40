"""What others do in a cloud's emulator, and with tables there.

usage: cloud_client.py JSON, of which `action` is what to do in the store or with a table of the catalog. Prints JSON.
"""

import datetime, decimal, json, sys, urllib.parse, urllib.request

asked = json.loads(sys.argv[1])
endpoint, container, action = asked["endpoint"], asked["container"], asked["action"]


def google(path, body=None):
    data = json.dumps(body).encode() if body else None
    request = urllib.request.Request(endpoint + path, data, {"Content-Type": "application/json"})
    return json.load(urllib.request.urlopen(request))


def azure():
    from azure.storage.blob import BlobServiceClient
    key = {"account_name": asked["account"], "account_key": asked["key"]}
    return BlobServiceClient(endpoint, credential=key)


def table():
    from pyiceberg.catalog.sql import SqlCatalog
    catalog = SqlCatalog("c", uri="sqlite:///" + asked["catalog"], **asked["properties"])
    return catalog.load_table(asked["table"])


said = None
if action == "make":
    if asked["store"] == "azure":
        azure().create_container(container)
    else:
        google("/storage/v1/b?project=p", {"name": container})
elif action == "names":
    if asked["store"] == "azure":
        said = sorted(blob.name for blob in azure().get_container_client(container).list_blobs())
    else:
        items = google(f"/storage/v1/b/{container}/o").get("items", [])
        said = sorted(item["name"] for item in items)
elif action in ("sas of the container", "sas of the account"):
    from azure.storage import blob
    until = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
    if action == "sas of the container":
        may = blob.ContainerSasPermissions(read=True, write=True, create=True, delete=True, list=True)
        said = blob.generate_container_sas(asked["account"], container, asked["key"], permission=may, expiry=until)
    else:
        may = blob.AccountSasPermissions(read=True, write=True, create=True, delete=True, list=True)
        types = blob.ResourceTypes(service=True, container=True, object=True)
        said = blob.generate_account_sas(asked["account"], asked["key"], types, may, until)
elif action == "read":
    rows = table().scan(row_filter=asked["filter"]).to_arrow().sort_by("id").to_pylist()
    said = [[str(value) for value in row.values()] for row in rows]
elif action == "append":
    import pyarrow
    row = {
        "id": pyarrow.array([77], pyarrow.int64()),
        "customer": pyarrow.array([2], pyarrow.int32()),
        "placed": pyarrow.array([datetime.date(2024, 3, 1)]),
        "total": pyarrow.array([decimal.Decimal("5.00")], pyarrow.decimal128(12, 2)),
        "note": pyarrow.array(["python"]),
    }
    table().append(pyarrow.table(row))
print(json.dumps(said))
