// Package loopback gives out ports of 127.0.0.1 to tests, benchmarks and demonstrations that start a server which is
// told its port. Between the choice of a port and the server's listening nobody else gets it: it lies below those that
// the kernel gives to whoever asks for any, and while this process lives no process is given it by this package again.
package loopback

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
)

// The ports that are given out. Linux gives those from 32768 on to whoever asks for any, macOS those from 49152 on.
const (
	lowest  = 20_000
	highest = 32_000
)

var (
	mu    sync.Mutex
	given = map[int]bool{}
	// locks is a file of which each process that is given a port locks the byte at that place; the locks end with it.
	locks = sync.OnceValues(func() (*os.File, error) {
		return os.OpenFile(filepath.Join(os.TempDir(), fmt.Sprintf("tidemark-ports-%d", os.Getuid())), os.O_CREATE|os.O_RDWR, 0o600)
	})
)

// Port is a TCP port that nobody listens on.
func Port() (int, error) {
	mu.Lock()
	defer mu.Unlock()
	file, err := locks()
	if err != nil {
		return 0, fmt.Errorf("reserve a port: %w", err)
	}
	for range 1000 {
		port := lowest + rand.IntN(highest-lowest)
		if given[port] || !lock(file, port) || !free(port) {
			continue
		}
		given[port] = true
		return port, nil
	}
	return 0, errors.New("reserve a port: none is free")
}

// Address is a Port with its host.
func Address() (string, error) {
	port, err := Port()
	if err != nil {
		return "", err
	}
	return address(port), nil
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

func lock(file *os.File, port int) bool {
	return syscall.FcntlFlock(file.Fd(), syscall.F_SETLK, &syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart, Start: int64(port), Len: 1}) == nil
}

func free(port int) bool {
	l, err := net.Listen("tcp", address(port))
	if err != nil {
		return false
	}
	return l.Close() == nil
}
