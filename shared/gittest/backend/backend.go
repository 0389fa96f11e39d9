// Package backend serves bare repositories over smart HTTP with git's own server program, git http-backend. It is
// for tests, benchmarks and demonstrations on a loopback address; it asks for no credentials and trusts everyone.
package backend

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// patience is what git's own commands may take on a busy machine.
const patience = time.Minute

// Handler serves the repositories below root, for reading and writing. stderr takes what git complains about; nil discards it.
func Handler(root string, stderr io.Writer) (http.Handler, error) {
	git, err := exec.LookPath("git")
	if err != nil {
		return nil, fmt.Errorf("serve repositories: git is not installed: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, git, "--exec-path").Output()
	if err != nil {
		return nil, fmt.Errorf("serve repositories: git --exec-path: %w", err)
	}
	program := filepath.Join(strings.TrimSpace(string(out)), "git-http-backend")
	if _, err := os.Stat(program); err != nil {
		return nil, fmt.Errorf("serve repositories: this git has no http-backend: %w", err)
	}
	if stderr == nil {
		stderr = io.Discard
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		environment := append(Environment(),
			"GIT_PROJECT_ROOT="+root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=git",
			"GIT_PROTOCOL="+r.Header.Get("Git-Protocol"))
		(&cgi.Handler{Path: program, Dir: root, Env: environment, Stderr: stderr, Logger: log.New(stderr, "", 0)}).ServeHTTP(w, r)
	}), nil
}

// Environment makes git ignore the configuration of this machine and of whoever runs it.
func Environment() []string {
	return []string{"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_TERMINAL_PROMPT=0", "HOME=" + os.DevNull, "LC_ALL=C"}
}

// settings are what a served repository needs beside git's defaults: to be pushed to, to filter, and to check what it
// is sent as hosts do.
const settings = `[receive]
	autogc = false
	fsckObjects = true
[http]
	receivepack = true
[uploadpack]
	allowFilter = true
`

// Init makes an empty bare repository in dir. format is sha1 or sha256.
func Init(dir, format string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", "init", "--quiet", "--bare", "--object-format="+format, "--initial-branch=main", dir)
	cmd.Env = append(os.Environ(), Environment()...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git init: %w: %s", err, out)
	}
	config, err := os.OpenFile(filepath.Join(dir, "config"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = config.WriteString(settings)
	return errors.Join(err, config.Close())
}
