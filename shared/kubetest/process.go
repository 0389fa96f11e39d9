package kubetest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// stopTimeout is how long a server may take to end by itself before it is killed.
const stopTimeout = 20 * time.Second

// binary finds a server that `make kube-servers` built.
func binary(t testing.TB, name string) string {
	t.Helper()
	dir := os.Getenv("KUBE_BIN")
	if dir == "" {
		cache := os.Getenv("XDG_CACHE_HOME")
		if cache == "" {
			home, err := os.UserHomeDir()
			if err != nil {
				t.Fatalf("no home directory: %v", err)
			}
			cache = filepath.Join(home, ".cache")
		}
		dir = filepath.Join(cache, "tidemark", "kube-"+kubeVersion+"-etcd-"+etcdVersion)
	}
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%s is missing; run `make kube-servers` once (%v)", name, err)
	}
	return path
}

// process is a server that can be ended and started again with the same arguments.
type process struct {
	name string
	path string
	args []string
	log  string

	cmd  *exec.Cmd
	done chan struct{}
}

func (p *process) start() error {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(p.path, p.args...) //nolint:noctx // it lives until stop or kill
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	diesWithUs(cmd.SysProcAttr)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	p.cmd, p.done = cmd, make(chan struct{})
	go func(done chan struct{}) {
		_ = cmd.Wait()
		close(done)
	}(p.done)
	return nil
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// stop asks the server to end and waits; kill does not ask.
func (p *process) stop() { p.end(syscall.SIGTERM) }
func (p *process) kill() { p.end(syscall.SIGKILL) }

func (p *process) end(with syscall.Signal) {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Signal(with)
	select {
	case <-p.done:
	case <-time.After(stopTimeout):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
	p.cmd = nil
}

// lastWords is the end of the server's log.
func (p *process) lastWords() string {
	raw, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(raw, []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-30):], []byte("\n")))
}
