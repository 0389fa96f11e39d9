// Package gitwire speaks the small part of git's wire protocol that a client without a clone needs: one request and
// its answer, over smart HTTP or SSH, and protocol v2's ls-refs with the older ways to list refs behind it.
//
// Connections are shared through a Pool: one HTTP transport per trust and proxy, one SSH connection per host, user
// and key. Every wait ends with the caller's context, also while dialling and shaking hands; answers are read up to
// a limit and then drained, so that connections are used again. No error repeats a URL or a secret.
package gitwire
