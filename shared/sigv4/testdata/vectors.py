#!/usr/bin/env python3
"""Writes vectors.json with botocore, an implementation of Signature Version 4 that is not ours.

Run it with botocore installed; the vectors in the repository came from 1.43.11."""
import base64, datetime, json, os, unittest.mock
import botocore.auth, botocore.session
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from urllib.parse import urlencode

NOW = datetime.datetime(2026, 3, 4, 5, 6, 7, tzinfo=datetime.timezone.utc)
KEY, SECRET = "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"  # AWS's own example pair
TOKEN = "IQoJb3JpZ2luX2VjEXAMPLE//////////wEaCXVzLWVhc3QtMSJHMEUCIQD+/=="


def presign(url, service, region, token, expires, headers):
    request = AWSRequest(method="GET", url=url, headers=headers)
    auth = botocore.auth.SigV4QueryAuth(Credentials(KEY, SECRET, token), service, region, expires=expires)
    with unittest.mock.patch("botocore.auth.get_current_datetime", lambda *a, **k: NOW.replace(tzinfo=None)):
        auth.add_auth(request)
    return request.prepare().url


vectors = []
for region, cluster, token in [("eu-west-1", "prod", TOKEN), ("us-east-1", "a-b_c1", None), ("cn-north-1", "prod", TOKEN)]:
    suffix = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    url = f"https://sts.{region}.{suffix}/?" + urlencode({"Action": "GetCallerIdentity", "Version": "2011-06-15"})
    signed = presign(url, "sts", region, token, 60, {"x-k8s-aws-id": cluster})
    vectors.append({"kind": "eks", "region": region, "name": cluster, "session": token or "",
                    "want": "k8s-aws-v1." + base64.urlsafe_b64encode(signed.encode()).decode().rstrip("=")})
for region, cache, user, token in [("eu-west-1", "tidemark", "tidemark-auditingest", TOKEN), ("us-gov-west-1", "facts", "who", None)]:
    url = f"https://{cache}/?" + urlencode({"Action": "connect", "User": user, "ResourceType": "ServerlessCache"})
    signed = presign(url, "elasticache", region, token, 900, {})
    vectors.append({"kind": "elasticache", "region": region, "name": cache, "user": user, "session": token or "",
                    "want": signed.removeprefix("https://")})
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "vectors.json"), "w") as f:
    json.dump({"time": NOW.isoformat().replace("+00:00", "Z"), "accessKeyID": KEY, "secretAccessKey": SECRET, "vectors": vectors}, f, indent=1)
    f.write("\n")
