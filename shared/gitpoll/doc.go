// Package gitpoll notices when git repositories move. It lists what a repository advertises, without cloning, and
// keeps for each source the commit that its tracking ref points at.
//
// One sweep core lists many repositories politely: grouped per host, a few at a time, each repository once. A
// Poller runs it in a resident process and keeps the observations in memory; a Fleet keeps them in Redis for
// functions that live for one sweep.
//
// No error, label or stored value contains a URL's userinfo or anything of a Secret.
package gitpoll
