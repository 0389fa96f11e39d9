// Package e2e holds the tests of the whole: a real control plane, a real Redis, a real git server, the functions as the
// processes that are shipped, and people who change things. `make e2e` runs them.
package e2e
