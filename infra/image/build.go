package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// tags of every shipped binary: without lambda.norpc the linker keeps html/template and cannot drop dead code, without
// noauditv1 shared/queue links Kubernetes' audit types.
const tags = "lambda.norpc,grpcnotrace,noauditv1"

// license of what is built.
const license = "Apache-2.0"

// budgets bound a binary's size in bytes. A cold start reads the binary.
var budgets = map[string]int64{
	"auditingest":   14e6,
	"authorcapture": 14e6,
	"refsweep":      19e6,
	"watchcommit":   22e6,
	"who":           22e6,
}

// binary builds functions/FUNCTION/PLATFORM for an architecture and returns its path.
func (j *job) binary(ctx context.Context, function, platform, arch string) (string, error) {
	out, err := filepath.Abs(filepath.Join(j.stage, function+"-"+platform+"-"+arch))
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-tags", tags, "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -buildid=", "-o", out, "./functions/"+function+"/"+platform)
	cmd.Dir = j.root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("build for %s: %w\n%s", arch, err, stderr.Bytes())
	}
	info, err := os.Stat(out)
	if err != nil {
		return "", err
	}
	if budget, ok := budgets[function]; ok && info.Size() > budget {
		return "", fmt.Errorf("the %s binary for %s has %d bytes, its budget is %d", platform, arch, info.Size(), budget)
	}
	return out, nil
}
