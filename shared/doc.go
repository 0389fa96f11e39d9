// Package shared is what Tidemark knows: small packages, each named for its subject. None imports functions/.
package shared
