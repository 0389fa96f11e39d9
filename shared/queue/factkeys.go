package queue

import "strings"

// The keys of the author family. All of a route's facts share a prefix, and all of an object's.

// appendRouteKey: <p>:author:v1:audit:route:<route>:<gr>, the root of what is known of a resource.
func appendRouteKey(dst []byte, prefix, route, gr string) []byte {
	dst = append(dst, prefix...)
	dst = append(dst, ":author:v1:audit:route:"...)
	dst = appendKeyPart(dst, route)
	dst = append(dst, ':')
	return append(dst, gr...)
}

// appendExactKey: string, the Record of who wrote this version of the object.
func appendExactKey(dst []byte, prefix, route, gr, uid, rv string) []byte {
	dst = appendRouteKey(dst, prefix, route, gr)
	dst = append(dst, ":object:"...)
	dst = appendKeyPart(dst, uid)
	dst = append(dst, ':')
	return appendKeyPart(dst, rv)
}

// appendLastKey: string, the Record of who wrote the object last or, once anybody did, of who deleted it.
func appendLastKey(dst []byte, prefix, route, gr, uid string) []byte {
	dst = appendRouteKey(dst, prefix, route, gr)
	dst = append(dst, ":object:"...)
	dst = appendKeyPart(dst, uid)
	return append(dst, ":last"...)
}

// appendVersionKey: string, the Record of who wrote this version, where the event shows no uid.
func appendVersionKey(dst []byte, prefix, route, gr, rv string) []byte {
	dst = appendRouteKey(dst, prefix, route, gr)
	dst = append(dst, ":rv:"...)
	return appendKeyPart(dst, rv)
}

// appendDeletionKey: string, the Record of who deleted the object, whatever its resource.
func appendDeletionKey(dst []byte, prefix, route, uid string) []byte {
	dst = appendRouteKey(dst, prefix, route, "deletion")
	dst = append(dst, ':')
	return appendKeyPart(dst, uid)
}

// appendNameKey: string, the Requests under the object's name, a line each.
func appendNameKey(dst []byte, prefix, route, gr, namespace, name string) []byte {
	dst = appendRouteKey(dst, prefix, route, gr)
	dst = append(dst, ":name:"...)
	dst = appendKeyPart(dst, namespace)
	dst = append(dst, ':')
	return appendKeyPart(dst, name)
}

// appendScopeKey: string, the collection deletes of the resource in a namespace, or in all when it is empty, as
// Requests, a line each.
func appendScopeKey(dst []byte, prefix, route, gr, namespace string) []byte {
	dst = appendRouteKey(dst, prefix, route, gr)
	dst = append(dst, ":scope:"...)
	return appendKeyPart(dst, namespace)
}

// commandAuthorKey: string, the CommandAuthor of a command object.
func commandAuthorKey(prefix, uid string) string {
	return prefix + ":author:v1:command:" + escapeKeyPart(uid)
}

// appendKeyPart appends a value that comes from outside, escaped as escapeKeyPart does.
func appendKeyPart(dst []byte, part string) []byte {
	if !strings.ContainsAny(part, "%:") {
		return append(dst, part...)
	}
	return append(dst, escapeKeyPart(part)...)
}
