"""Turns Google's uploads by the XML API, of which fake-gcs-server knows none, into uploads by its JSON API; without the token nothing is
answered.

usage: gcs_door.py PORT URL-OF-FAKE-GCS-SERVER TOKEN
"""

import itertools, json, re, sys
from aiohttp import ClientSession, web
from yarl import URL

port, upstream, token = int(sys.argv[1]), sys.argv[2], sys.argv[3]
uploads, numbers = {}, itertools.count(1)


def xml(text, status=200, **headers):
    return web.Response(text=text, status=status, content_type="application/xml", headers=headers)


async def store(session, bucket, name, body, generation):
    url = f"{upstream}/upload/storage/v1/b/{bucket}/o?uploadType=media&name={name}"
    if generation is not None:
        url += f"&ifGenerationMatch={generation}"
    headers = {"Content-Type": "application/octet-stream"}
    async with session.post(URL(url, encoded=True), data=body, headers=headers) as answer:
        text = await answer.text()
        if answer.status != 200:
            code = {404: "NoSuchBucket", 412: "PreconditionFailed"}.get(answer.status, "Error")
            return answer.status, f"<Error><Code>{code}</Code></Error>", ""
        made = json.loads(text)
        return 200, made["generation"], '"%s"' % made["etag"].strip('"')


async def handle(request):
    if request.headers.get("Authorization") != f"Bearer {token}":
        return xml("<Error><Code>AuthenticationRequired</Code></Error>", 401)
    path, query = request.raw_path.partition("?")[0], request.query
    bucket, _, name = path[1:].partition("/")
    async with ClientSession(auto_decompress=False) as session:
        if request.method == "POST" and "uploads" in query:
            async with session.get(f"{upstream}/storage/v1/b/{bucket}") as answer:
                if answer.status != 200:
                    return xml("<Error><Code>NoSuchBucket</Code></Error>", 404)
            upload = f"upload-{next(numbers)}"
            uploads[upload] = {}
            return xml(f"<InitiateMultipartUploadResult><UploadId>{upload}</UploadId></InitiateMultipartUploadResult>")
        if "uploadId" in query:
            parts = uploads.get(query["uploadId"])
            if parts is None:
                return xml("<Error><Code>NoSuchUpload</Code></Error>", 404)
            body = await request.read()
            if request.method == "PUT":
                number = int(query["partNumber"])
                parts[number] = body
                return web.Response(headers={"ETag": f'"{number}-{len(body)}"'})
            del uploads[query["uploadId"]]
            if request.method == "DELETE":
                return web.Response(status=204)
            wanted = [int(number) for number in re.findall(rb"<PartNumber>(\d+)<", body)]
            whole = b"".join(parts[number] for number in wanted)
            status, generation, etag = await store(session, bucket, name, whole, None)
            if status != 200:
                return xml(generation, status)
            text = f"<CompleteMultipartUploadResult><ETag>{etag}</ETag></CompleteMultipartUploadResult>"
            return xml(text, **{"x-goog-generation": generation})
        if request.method == "PUT":
            expected = request.headers.get("x-goog-if-generation-match")
            status, generation, etag = await store(session, bucket, name, await request.read(), expected)
            if status != 200:
                return xml(generation, status)
            return web.Response(headers={"ETag": etag, "x-goog-generation": generation})
        headers = {key: request.headers[key] for key in ("Range", "If-Match", "If-None-Match") if key in request.headers}
        url = URL(upstream + request.raw_path, encoded=True)
        async with session.request(request.method, url, headers=headers) as answer:
            response = web.StreamResponse(status=answer.status)
            for key, value in answer.headers.items():
                if key not in ("Transfer-Encoding", "Connection", "Date"):
                    response.headers.add(key, value)
            await response.prepare(request)
            async for chunk in answer.content.iter_any():
                await response.write(chunk)
            return response


app = web.Application(client_max_size=1 << 30)
app.router.add_route("*", "/{path:.*}", handle)
web.run_app(app, host="127.0.0.1", port=port, print=None)
