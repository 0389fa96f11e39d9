package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// module makes a Go module with one function, in a folder of its own: a build must not depend on where it is made.
func module(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for name, from := range map[string]string{"knative": "testdata/knative.go.txt", "lambda": "testdata/lambda.go.txt"} {
		source, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(root, "functions", "hello", name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "main.go"), source, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "go.mod"), []byte("module example.com/hello\n\ngo 1.26.0\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return root
}

// build runs the command into a new folder and returns it.
func build(t *testing.T, args ...string) string {
	t.Helper()
	out := t.TempDir()
	if err := run(t.Context(), append([]string{args[0], "-root", module(t), "-out", out}, args[1:]...)); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestTwoBuildsInDifferentFoldersAreTheSameBytes(t *testing.T) {
	for _, kind := range []string{"oci", "zips"} {
		first, second := contents(t, build(t, kind)), contents(t, build(t, kind))
		if len(first) < 4 {
			t.Fatalf("%s wrote %d files, want at least 4", kind, len(first))
		}
		for name, content := range first {
			if !bytes.Equal(content, second[name]) {
				t.Errorf("%s: %s differs between two builds", kind, name)
			}
		}
		if len(first) != len(second) {
			t.Errorf("%s: %d files, then %d", kind, len(first), len(second))
		}
	}
}

func contents(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		out[rel], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestALayoutHoldsAValidImageForEachArchitecture(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1772600767")
	index, err := layout.ImageIndexFromPath(filepath.Join(build(t, "oci", "-revision", "0123abc"), "hello"))
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var arches []string
	for _, d := range manifest.Manifests {
		arches = append(arches, d.Platform.OS+"/"+d.Platform.Architecture)
		img, err := index.Image(d.Digest)
		if err != nil {
			t.Fatal(err)
		}
		config, err := img.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if config.Architecture != d.Platform.Architecture || config.Config.User != "65532:65532" || strings.Join(config.Config.Entrypoint, " ") != "/hello" {
			t.Errorf("config is for %s, user %q, entrypoint %q", config.Architecture, config.Config.User, config.Config.Entrypoint)
		}
		if env := strings.Join(config.Config.Env, " "); !strings.Contains(env, "LISTEN_ADDRESS=[::]:8080") {
			t.Errorf("environment is %s, want LISTEN_ADDRESS in it", env)
		}
		if got := config.Created.UTC().Format("2006-01-02T15:04:05Z"); got != "2026-03-04T05:06:07Z" {
			t.Errorf("created is %s, want SOURCE_DATE_EPOCH", got)
		}
		if got := config.Config.Labels["org.opencontainers.image.revision"]; got != "0123abc" {
			t.Errorf("revision is %q", got)
		}
	}
	if got := strings.Join(arches, " "); got != "linux/amd64 linux/arm64" {
		t.Errorf("the index is for %s", got)
	}
}

func TestTheImageRunsWithNothingButItself(t *testing.T) {
	out := build(t, "oci", "-arch", runtime.GOARCH)
	img, err := tarball.ImageFromPath(filepath.Join(out, "hello-"+runtime.GOARCH+".tar"), nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	unpack(t, img, dir)
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(config.Config.Entrypoint[0])
	cmd.Env, cmd.Dir = config.Config.Env, "/"
	want := "uid=65532 authorities=true listen=[::]:8080\n"
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: dir, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
	} else { // without the right to change the root, the binary still shows that it is static and finds the authorities
		cmd.Path = filepath.Join(dir, "hello")
		cmd.Env = append(cmd.Env, "SSL_CERT_FILE="+filepath.Join(dir, rootsPath), "SSL_CERT_DIR="+dir)
		want = strings.TrimPrefix(want, "uid=65532 ")
	}
	got, err := cmd.CombinedOutput()
	if err != nil || !strings.HasSuffix(string(got), want) {
		t.Errorf("the function says %q (%v), want %q", got, err, want)
	}
}

func unpack(t *testing.T, img v1.Image, dir string) {
	t.Helper()
	rc := mutate.Extract(img)
	defer rc.Close()
	r := tar.NewReader(rc)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.Clean("/"+h.Name))
		if h.Typeflag == tar.TypeDir {
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, os.FileMode(h.Mode)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheAuthoritiesAreCertificates(t *testing.T) {
	n := 0
	for rest := roots(); ; n++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if c, err := x509.ParseCertificate(block.Bytes); err != nil || !c.IsCA {
			t.Errorf("block %d is no certificate authority: %v", n, err)
		}
	}
	if n < 50 {
		t.Errorf("%d authorities, want at least 50", n)
	}
}

func TestAPackageHoldsOneStaticBootstrap(t *testing.T) {
	out := build(t, "zips")
	for arch, machine := range map[string]string{"x86_64": "\x3e\x00", "arm64": "\xb7\x00"} {
		r, err := zip.OpenReader(filepath.Join(out, "hello-"+arch+".zip"))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if len(r.File) != 1 || r.File[0].Name != "bootstrap" || r.File[0].Mode() != 0o755 {
			t.Fatalf("%s: the package holds %v", arch, r.File)
		}
		f, err := r.File[0].Open()
		if err != nil {
			t.Fatal(err)
		}
		elf, err := io.ReadAll(f)
		if err != nil {
			t.Fatal(err)
		}
		if string(elf[18:20]) != machine {
			t.Errorf("%s: the binary is for machine %x, want %x", arch, elf[18:20], machine)
		}
	}
}

func TestTheSBOMNamesTheBinaryAndItsModules(t *testing.T) {
	// This test's own binary has many modules.
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	j := job{out: t.TempDir()}
	if err := j.sbom("hello", "amd64", self, rootsModule(), nil); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(j.out, "hello-amd64.spdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	var doc spdxDocument
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	ids, purls := map[string]bool{doc.SPDXID: true}, map[string]bool{}
	for _, p := range doc.Packages {
		if ids[p.SPDXID] {
			t.Errorf("identifier %s is used twice", p.SPDXID)
		}
		ids[p.SPDXID] = true
		for _, ref := range p.ExternalRefs {
			name, _, _ := strings.Cut(ref.Locator, "@")
			purls[name] = true
		}
	}
	for _, r := range doc.Relationships {
		if !ids[r.Element] || !ids[r.Related] {
			t.Errorf("relationship %s %s %s names what is not there", r.Element, r.Type, r.Related)
		}
	}
	for _, want := range []string{"pkg:golang/stdlib", "pkg:golang/github.com/google/go-containerregistry", "pkg:golang/golang.org/x/crypto/x509roots/fallback"} {
		if !purls[want] {
			t.Errorf("%s is missing among %d packages", want, len(doc.Packages))
		}
	}
	if len(doc.Packages[0].Checksums) != 1 || len(doc.Packages[0].Checksums[0].Value) != 64 {
		t.Errorf("the binary's checksum is %v", doc.Packages[0].Checksums)
	}
}

func TestABinaryAboveItsBudgetFailsTheBuild(t *testing.T) {
	budgets["hello"] = 1000
	defer delete(budgets, "hello")
	err := run(t.Context(), []string{"zips", "-root", module(t), "-out", t.TempDir(), "-arch", "amd64"})
	if err == nil || !strings.Contains(err.Error(), "its budget is 1000") {
		t.Errorf("got %v, want an error that names the budget", err)
	}
}

func TestMistakesAreNamed(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"nothing to build":           {nil, "say what to build"},
		"an unknown kind":            {[]string{"deb"}, "say what to build"},
		"no folder":                  {[]string{"oci", "-root", module(t)}, "-out is not set"},
		"an unknown function":        {[]string{"oci", "-root", module(t), "-out", "x", "-functions", "who"}, `function "who" has no functions/who/knative/main.go`},
		"a module without functions": {[]string{"oci", "-root", "testdata", "-out", "x"}, "has no functions/*/knative/main.go"},
		"what Lambda does not run":   {[]string{"zips", "-root", module(t), "-out", t.TempDir(), "-arch", "s390x"}, "lambda does not run s390x"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := run(t.Context(), c.args); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	t.Run("a time that is no number", func(t *testing.T) {
		t.Setenv("SOURCE_DATE_EPOCH", "yesterday")
		if err := run(t.Context(), []string{"oci", "-root", module(t), "-out", t.TempDir()}); err == nil || !strings.Contains(err.Error(), "SOURCE_DATE_EPOCH (yesterday)") {
			t.Errorf("got %v, want an error that names SOURCE_DATE_EPOCH", err)
		}
	})
}
