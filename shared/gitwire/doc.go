// Package gitwire speaks the small part of git's wire protocol that a client without a clone needs, over smart HTTP and
// SSH: list refs, fetch commits and trees, and push a pack, each with one request and its answer. Protocol v2 comes first;
// behind it are the ways of older servers.
//
// Connections are shared through a Pool: one HTTP transport per trust and proxy, one SSH connection per host, user
// and key. Every wait ends with the caller's context, also while dialling and shaking hands; answers are read up to
// a limit and then drained, so that connections are used again. No error repeats a URL or a secret.
package gitwire
