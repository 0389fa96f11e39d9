package main

import (
	"bytes"
	"encoding/pem"
	"runtime/debug"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// rootsModule is the Go module that the certificate authorities come from, as this program was built with it; nil when
// the program was built without modules' information.
func rootsModule() *debug.Module {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	for _, m := range info.Deps {
		if m.Path == "golang.org/x/crypto/x509roots/fallback" {
			return m
		}
	}
	return nil
}

// roots is the certificate authorities that Mozilla trusts, as PEM. They come from a Go module, so that they are the same
// on every machine. Those that are trusted for some of their certificates only are left out: a PEM file cannot say so.
func roots() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a Buffer takes everything
		}
	}
	return out.Bytes()
}
