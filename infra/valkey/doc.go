// Package valkey holds the configuration of the server and its users, and the tests of both on a real server.
package valkey
