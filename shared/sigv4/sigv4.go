// Package sigv4 makes the two tokens that AWS derives from a presigned request: the bearer token of an EKS API server and
// the password of an ElastiCache user with IAM authentication. A token is computed, not fetched: no request is sent.
//
// The signing process is AWS Signature Version 4 with the signature in the query
// (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html).
package sigv4

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	algorithm  = "AWS4-HMAC-SHA256"
	timeFormat = "20060102T150405Z"
	// stsExpiry is what EKS's own clients send; STS takes such a request for 15 minutes whatever it says.
	stsExpiry = time.Minute
	// elastiCacheExpiry is the longest that ElastiCache allows. It bounds the login, not the connection.
	elastiCacheExpiry = 15 * time.Minute
	// EKSTokenLife is how long an EKS token may be used, with a minute for clocks that differ.
	EKSTokenLife = 14 * time.Minute

	eksTokenPrefix = "k8s-aws-v1."
)

// Credentials sign. Printing them prints nothing of the secret parts.
type Credentials struct {
	AccessKeyID     string
	SecretAccessKey string
	SessionToken    string
}

func (c Credentials) String() string   { return "AWS credentials" }
func (c Credentials) GoString() string { return "AWS credentials" }

// FromEnv reads the credentials that Lambda gives every execution environment. Call it for each token: they change.
func FromEnv() (Credentials, error) {
	c := Credentials{os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY"), os.Getenv("AWS_SESSION_TOKEN")}
	if c.AccessKeyID == "" || c.SecretAccessKey == "" {
		return Credentials{}, errors.New("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set: a role's credentials are needed to sign")
	}
	return c, nil
}

// EKSToken is the bearer token with which the credentials' role speaks to the API server of an EKS cluster.
func EKSToken(c Credentials, region, cluster string, now time.Time) string {
	url := presign(c, request{
		service: "sts", region: region, host: "sts." + region + "." + dnsSuffix(region),
		query:   map[string]string{"Action": "GetCallerIdentity", "Version": "2011-06-15"},
		headers: map[string]string{"x-k8s-aws-id": cluster},
		expires: stsExpiry,
	}, now)
	return eksTokenPrefix + base64.RawURLEncoding.EncodeToString([]byte(url))
}

// ElastiCachePassword is the password of an ElastiCache user, for a serverless cache, during the next 15 minutes.
func ElastiCachePassword(c Credentials, region, cache, user string, now time.Time) string {
	url := presign(c, request{
		service: "elasticache", region: region, host: cache,
		query:   map[string]string{"Action": "connect", "ResourceType": "ServerlessCache", "User": user},
		expires: elastiCacheExpiry,
	}, now)
	return strings.TrimPrefix(url, "https://")
}

// request is a GET of / without a body.
type request struct {
	service, region, host string
	query, headers        map[string]string
	expires               time.Duration
}

// presign returns the request's address with the signature in its query.
func presign(c Credentials, r request, now time.Time) string {
	stamp := now.UTC().Format(timeFormat)
	scope := strings.Join([]string{stamp[:8], r.region, r.service, "aws4_request"}, "/")
	headers := map[string]string{"host": r.host}
	maps.Copy(headers, r.headers)
	signed := strings.Join(slices.Sorted(maps.Keys(headers)), ";")

	query := map[string]string{
		"X-Amz-Algorithm":     algorithm,
		"X-Amz-Credential":    c.AccessKeyID + "/" + scope,
		"X-Amz-Date":          stamp,
		"X-Amz-Expires":       strconv.Itoa(int(r.expires / time.Second)),
		"X-Amz-SignedHeaders": signed,
	}
	if c.SessionToken != "" {
		query["X-Amz-Security-Token"] = c.SessionToken
	}
	maps.Copy(query, r.query)

	var canonicalHeaders strings.Builder
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		canonicalHeaders.WriteString(name + ":" + strings.TrimSpace(headers[name]) + "\n")
	}
	canonical := strings.Join([]string{"GET", "/", encodeQuery(query), canonicalHeaders.String(), signed, hash("")}, "\n")
	toSign := strings.Join([]string{algorithm, stamp, scope, hash(canonical)}, "\n")

	key := []byte("AWS4" + c.SecretAccessKey)
	for _, part := range []string{stamp[:8], r.region, r.service, "aws4_request"} {
		key = mac(key, part)
	}
	return "https://" + r.host + "/?" + encodeQuery(query) + "&X-Amz-Signature=" + hex.EncodeToString(mac(key, toSign))
}

// encodeQuery sorts by name and escapes as RFC 3986 does; url.Values would write + for a space.
func encodeQuery(query map[string]string) string {
	pairs := make([]string, 0, len(query))
	for _, name := range slices.Sorted(maps.Keys(query)) {
		pairs = append(pairs, escape(name)+"="+escape(query[name]))
	}
	return strings.Join(pairs, "&")
}

func escape(s string) string {
	const hexDigits = "0123456789ABCDEF"
	var out strings.Builder
	for _, b := range []byte(s) {
		switch {
		case 'A' <= b && b <= 'Z', 'a' <= b && b <= 'z', '0' <= b && b <= '9', b == '-', b == '_', b == '.', b == '~':
			out.WriteByte(b)
		default:
			out.Write([]byte{'%', hexDigits[b>>4], hexDigits[b&15]})
		}
	}
	return out.String()
}

// dnsSuffix is the domain of AWS's services in the region's partition.
func dnsSuffix(region string) string {
	if strings.HasPrefix(region, "cn-") {
		return "amazonaws.com.cn"
	}
	return "amazonaws.com"
}

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

func mac(key []byte, data string) []byte {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(data))
	return m.Sum(nil)
}
