"""Computes the signatures of requests anew by botocore, AWS's own library, and compares.

usage: verify_sigv4.py KEY SECRET REGION SERVICE ORIGIN REQUESTS
REQUESTS is JSON: [{"method", "path", "headers": [[name, value], ...], "body"}, ...]
"""

import hashlib
import json
import re
import sys

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

key, secret, region, service, origin, requests = sys.argv[1:]
right = 0
for request in json.loads(requests):
    headers = {name.lower(): value for name, value in request["headers"]}
    assert headers["x-amz-security-token"] == "session/+=", headers
    digest = hashlib.sha256(request["body"].encode()).hexdigest()
    assert headers["x-amz-content-sha256"] == digest, (headers, digest)
    scheme, credential, signed, signature = re.fullmatch(
        r"(\S+) Credential=([^,]+), SignedHeaders=([^,]+), Signature=([0-9a-f]{64})", headers["authorization"]
    ).groups()
    date = headers["x-amz-date"]
    assert scheme == "AWS4-HMAC-SHA256"
    assert credential == f"{key}/{date[:8]}/{region}/{service}/aws4_request", credential
    names = signed.split(";")
    for name in ["host", "x-amz-content-sha256", "x-amz-date", "x-amz-security-token"]:
        assert name in names, names
    again = AWSRequest(
        method=request["method"],
        url=origin + request["path"],
        data=request["body"],
        headers={name: headers[name] for name in names},
    )
    again.context["timestamp"] = date
    auth = SigV4Auth(Credentials(key, secret, "session/+="), service, region)
    expected = auth.signature(auth.string_to_sign(again, auth.canonical_request(again)), again)
    assert signature == expected, (request, auth.canonical_request(again))
    right += 1
print(f"{right} signatures are right")
