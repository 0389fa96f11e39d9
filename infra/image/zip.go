package main

import (
	"archive/zip"
	"compress/flate"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// lambdaArch is what Lambda calls an architecture.
var lambdaArch = map[string]string{"amd64": "x86_64", "arm64": "arm64"}

// zips writes OUT/FUNCTION-ARCH.zip, with Lambda's name of the architecture, and its SBOM. In a package is one file,
// `bootstrap`, which is what the runtime provided.al2023 starts.
func (j *job) zips(ctx context.Context, function string) error {
	for _, arch := range j.arches {
		lambda, ok := lambdaArch[arch]
		if !ok {
			return fmt.Errorf("lambda does not run %s", arch)
		}
		binary, err := j.binary(ctx, function, "lambda", arch)
		if err != nil {
			return err
		}
		path := filepath.Join(j.out, function+"-"+lambda+".zip")
		if err := writePackage(path, binary); err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
		if err := j.sbom(function, lambda, binary); err != nil {
			return err
		}
		fmt.Println(path)
	}
	return nil
}

func writePackage(path, binary string) error {
	code, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w := zip.NewWriter(f)
	w.RegisterCompressor(zip.Deflate, func(out io.Writer) (io.WriteCloser, error) { return flate.NewWriter(out, flate.BestCompression) })
	header := &zip.FileHeader{Name: "bootstrap", Method: zip.Deflate, Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)}
	header.SetMode(0o755)
	entry, err := w.CreateHeader(header)
	if err != nil {
		return err
	}
	if _, err := entry.Write(code); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return f.Close()
}
