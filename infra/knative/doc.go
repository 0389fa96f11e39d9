// Package knative holds the manifests of the functions on Knative, and the tests that apply them.
package knative
