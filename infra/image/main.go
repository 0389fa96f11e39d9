// Command image builds what the platforms run, without a container engine and the same bytes each time:
//
//	image oci  -out dist/images    an OCI layout, a tarball for `docker load` and an SBOM a function
//	image zips -out dist/lambda    a package for AWS Lambda and an SBOM a function
//
// Every binary is static and is measured against its budget: one that is too large fails the build.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// job is what one call builds.
type job struct {
	root      string // of the module whose functions/ are built
	out       string
	functions []string
	arches    []string
	revision  string
	created   time.Time
	stage     string // folder for binaries
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 || (args[0] != "oci" && args[0] != "zips") {
		return errors.New("say what to build: oci or zips")
	}
	platform := "knative"
	if args[0] == "zips" {
		platform = "lambda"
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	root := flags.String("root", ".", "folder of the Go module")
	out := flags.String("out", "", "folder to write to")
	functions := flags.String("functions", "", "functions to build, comma-separated; empty means all that have a main for the platform")
	arches := flags.String("arch", "amd64,arm64", "architectures")
	revision := flags.String("revision", "", "commit that is built, for the image's label")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if *out == "" {
		return errors.New("-out is not set")
	}
	j := job{root: *root, out: *out, arches: strings.Split(*arches, ","), revision: *revision}
	var err error
	if j.created, err = created(os.Getenv("SOURCE_DATE_EPOCH")); err != nil {
		return err
	}
	if j.functions, err = chosen(*root, platform, *functions); err != nil {
		return err
	}
	if j.stage, err = os.MkdirTemp("", "image-"); err != nil {
		return err
	}
	defer os.RemoveAll(j.stage)
	if err := os.MkdirAll(j.out, 0o755); err != nil {
		return err
	}
	for _, function := range j.functions {
		build := j.image
		if platform == "lambda" {
			build = j.zips
		}
		if err := build(ctx, function); err != nil {
			return fmt.Errorf("%s: %w", function, err)
		}
	}
	return nil
}

// created is the time that images and SBOMs carry: the epoch, unless the caller knows the commit's time.
func created(epoch string) (time.Time, error) {
	seconds, err := strconv.ParseInt(cmp.Or(epoch, "0"), 10, 64)
	if err != nil || seconds < 0 {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH (%s) must be a whole number of seconds", epoch)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// chosen lists the functions to build: those named, or all with a main for the platform.
func chosen(root, platform, names string) ([]string, error) {
	found, err := filepath.Glob(filepath.Join(root, "functions", "*", platform, "main.go"))
	if err != nil {
		return nil, err
	}
	var all []string
	for _, f := range found {
		all = append(all, filepath.Base(filepath.Dir(filepath.Dir(f))))
	}
	if names == "" {
		if len(all) == 0 {
			return nil, fmt.Errorf("%s has no functions/*/%s/main.go", root, platform)
		}
		return all, nil
	}
	list := strings.Split(names, ",")
	for _, n := range list {
		if !slices.Contains(all, n) {
			return nil, fmt.Errorf("function %q has no functions/%s/%s/main.go", n, n, platform)
		}
	}
	return list, nil
}
