// Package audit holds what the API server reads about audit events, and the test of the flags that go with it.
package audit
