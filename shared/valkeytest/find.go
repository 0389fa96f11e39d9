package valkeytest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// installTimeout bounds one command of a package manager.
const installTimeout = 5 * time.Minute

var servers = []string{"valkey-server", "redis-server"}

// installers are the package managers that can be asked: how to refresh what they know, and how to install.
var installers = []struct{ refresh, install []string }{
	{[]string{"apt-get", "update"}, []string{"apt-get", "install", "-y", "--no-install-recommends", "redis-server"}},
	{nil, []string{"dnf", "install", "-y", "valkey"}},
	{nil, []string{"apk", "add", "--no-cache", "valkey"}},
	{nil, []string{"brew", "install", "valkey"}},
}

var find = sync.OnceValues(func() (string, error) {
	if path := onPath(); path != "" {
		return path, nil
	}
	// Test binaries of several packages run at once; one of them installs.
	lock, err := os.OpenFile(filepath.Join(os.TempDir(), "tidemark-valkeytest.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", err
	}
	if path := onPath(); path != "" {
		return path, nil
	}
	if err := install(); err != nil {
		return "", fmt.Errorf("neither valkey-server nor redis-server is on PATH, REDIS_ADDR is not set, and installing one failed: %w", err)
	}
	if path := onPath(); path != "" {
		return path, nil
	}
	return "", errors.New("a package was installed, but neither valkey-server nor redis-server is on PATH")
})

func onPath() string {
	for _, name := range servers {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

func install() error {
	for _, manager := range installers {
		name := manager.install[0]
		if _, err := exec.LookPath(name); err != nil {
			continue
		}
		var sudo []string
		if name != "brew" && os.Geteuid() != 0 {
			if _, err := exec.LookPath("sudo"); err != nil {
				return fmt.Errorf("%s needs root, and there is no sudo", name)
			}
			sudo = []string{"sudo", "-n"}
		}
		err := run(sudo, manager.install)
		if err != nil && manager.refresh != nil { // the package lists may be missing or old
			if err = run(sudo, manager.refresh); err == nil {
				err = run(sudo, manager.install)
			}
		}
		return err
	}
	return errors.New("no package manager is known here")
}

func run(sudo, command []string) error {
	command = append(append([]string{}, sudo...), command...)
	ctx, cancel := context.WithTimeout(context.Background(), installTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%v: %w: %s", command, err, out[max(0, len(out)-1024):])
	}
	return nil
}
