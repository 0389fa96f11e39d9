package main

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	nonroot   = "65532"
	rootsPath = "etc/ssl/certs/ca-certificates.crt"
)

// image writes OUT/FUNCTION (an OCI layout of all architectures), OUT/FUNCTION-ARCH.tar and OUT/FUNCTION-ARCH.spdx.json.
func (j *job) image(ctx context.Context, function string) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arch := range j.arches {
		binary, err := j.binary(ctx, function, "knative", arch)
		if err != nil {
			return err
		}
		img, err := j.oneImage(function, arch, binary)
		if err != nil {
			return err
		}
		platform := &v1.Platform{OS: "linux", Architecture: arch}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: platform}})
		tag, err := name.NewTag("tidemark/" + function + ":latest")
		if err != nil {
			return err
		}
		if err := tarball.WriteToFile(filepath.Join(j.out, function+"-"+arch+".tar"), tag, img); err != nil {
			return fmt.Errorf("write the tarball for %s: %w", arch, err)
		}
		if err := j.sbom(function, arch, binary, rootsModule()); err != nil {
			return err
		}
	}
	dir := filepath.Join(j.out, function)
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if _, err := layout.Write(dir, index); err != nil {
		return fmt.Errorf("write the layout: %w", err)
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	fmt.Printf("%s %s\n", dir, digest)
	return nil
}

// oneImage is certificate authorities, a user and the binary on nothing.
func (j *job) oneImage(function, arch, binary string) (v1.Image, error) {
	code, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	ground, err := layer(j.created,
		file{name: "etc/passwd", mode: 0o644, content: []byte("nonroot:x:" + nonroot + ":" + nonroot + ":nonroot:/:/sbin/nologin\n")},
		file{name: rootsPath, mode: 0o644, content: roots()})
	if err != nil {
		return nil, err
	}
	top, err := layer(j.created, file{name: function, mode: 0o755, content: code})
	if err != nil {
		return nil, err
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if img, err = mutate.AppendLayers(img, ground, top); err != nil {
		return nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", arch
	config.Created = v1.Time{Time: j.created}
	config.History = []v1.History{
		{Created: config.Created, CreatedBy: "certificate authorities and a user"},
		{Created: config.Created, CreatedBy: "the function"},
	}
	config.Config = v1.Config{
		Entrypoint: []string{"/" + function},
		User:       nonroot + ":" + nonroot,
		WorkingDir: "/",
		// func-go may bind loopback only when PORT alone is set.
		Env:          []string{"LISTEN_ADDRESS=[::]:8080", "SSL_CERT_FILE=/" + rootsPath},
		ExposedPorts: map[string]struct{}{"8080/tcp": {}},
		Labels: map[string]string{
			"org.opencontainers.image.title":    function,
			"org.opencontainers.image.source":   "https://github.com/tidemark-dev/tidemark",
			"org.opencontainers.image.licenses": license,
		},
	}
	if j.revision != "" {
		config.Config.Labels["org.opencontainers.image.revision"] = j.revision
	}
	return mutate.ConfigFile(img, config)
}

type file struct {
	name    string
	mode    int64
	content []byte
}

// layer is a tar of the files and the folders above them, owned by root, with one time for all.
func layer(created time.Time, files ...file) (v1.Layer, error) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	seen := map[string]bool{}
	for _, f := range files {
		var above []string
		for d := filepath.Dir(f.name); d != "."; d = filepath.Dir(d) {
			above = append([]string{d}, above...)
		}
		for _, d := range above {
			if seen[d] {
				continue
			}
			seen[d] = true
			if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: d + "/", Mode: 0o755, ModTime: created, Format: tar.FormatPAX}); err != nil {
				return nil, err
			}
		}
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Size: int64(len(f.content)), ModTime: created, Format: tar.FormatPAX}); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(buf.Bytes())), nil }, tarball.WithMediaType(types.OCILayer))
}
