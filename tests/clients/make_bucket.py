"""Makes a bucket. usage: make_bucket.py ENDPOINT NAME"""

import sys

import boto3

boto3.client(
    "s3", endpoint_url=sys.argv[1], region_name="us-east-1", aws_access_key_id="test", aws_secret_access_key="test"
).create_bucket(Bucket=sys.argv[2])
