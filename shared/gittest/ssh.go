package gittest

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/tidemark-dev/tidemark/shared/gittest/backend"
)

// SSHServer serves the repositories of a Server over SSH, running git's own programs.
type SSHServer struct {
	Address    string
	Identity   []byte // the private key that is let in, in PEM
	KnownHosts []byte // the line that a known_hosts file needs

	root        string
	t           testing.TB
	mu          sync.Mutex
	connections int
	commands    []string
	withoutV2   bool
}

// NewSSHServer starts an SSH server for the same repositories.
func (s *Server) NewSSHServer() *SSHServer {
	s.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	server := &SSHServer{Address: listener.Addr().String(), root: s.Root, t: s.t}
	host, _ := sshKey(s.t)
	client, pemKey := sshKey(s.t)
	server.Identity = pemKey
	hostname, port, _ := net.SplitHostPort(server.Address)
	server.KnownHosts = []byte("[" + hostname + "]:" + port + " " + string(ssh.MarshalAuthorizedKey(host.PublicKey())))
	config := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if string(key.Marshal()) != string(client.PublicKey().Marshal()) {
			return nil, errors.New("unknown key")
		}
		return nil, nil
	}}
	config.AddHostKey(host)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { server.serve(conn, config) })
		}
	})
	s.t.Cleanup(func() { _ = listener.Close() })
	return server
}

func sshKey(t testing.TB) (ssh.Signer, []byte) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return signer, pem.EncodeToMemory(block)
}

// URL is the address of a repository that a Server made under this name.
func (s *SSHServer) URL(name string) string { return "ssh://git@" + s.Address + "/" + name }

// WithoutV2 makes the server ignore the wish for protocol v2, as sshd does that accepts no such variable.
func (s *SSHServer) WithoutV2() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.withoutV2 = true
}

// Seen is how many connections were made and which commands were run.
func (s *SSHServer) Seen() (connections int, commands []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.connections, append([]string(nil), s.commands...)
}

func (s *SSHServer) serve(conn net.Conn, config *ssh.ServerConfig) {
	defer conn.Close()
	_, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	s.mu.Lock()
	s.connections++
	s.mu.Unlock()
	go ssh.DiscardRequests(requests)
	for offered := range channels {
		channel, requests, err := offered.Accept()
		if err != nil {
			return
		}
		go s.session(channel, requests)
	}
}

// session runs one command.
func (s *SSHServer) session(channel ssh.Channel, requests <-chan *ssh.Request) {
	defer channel.Close()
	protocol := ""
	for request := range requests {
		var name struct{ Name, Value string }
		var command struct{ Line string }
		switch {
		case request.Type == "env" && ssh.Unmarshal(request.Payload, &name) == nil && name.Name == "GIT_PROTOCOL":
			protocol = name.Value
			_ = request.Reply(true, nil)
		case request.Type == "exec" && ssh.Unmarshal(request.Payload, &command) == nil:
			_ = request.Reply(true, nil)
			status := s.run(channel, command.Line, protocol)
			_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{status}))
			return
		default:
			_ = request.Reply(false, nil)
		}
	}
}

func (s *SSHServer) run(channel ssh.Channel, line, protocol string) uint32 {
	s.mu.Lock()
	s.commands = append(s.commands, line)
	if s.withoutV2 {
		protocol = ""
	}
	s.mu.Unlock()
	program, path, _ := strings.Cut(line, " ")
	path = filepath.Join(s.root, filepath.FromSlash(strings.Trim(path, "'")))
	if program != "git-upload-pack" && program != "git-receive-pack" || !strings.HasPrefix(path, s.root) {
		_, _ = io.WriteString(channel.Stderr(), "fatal: unknown command\n")
		return 128
	}
	cmd := exec.Command("git", strings.TrimPrefix(program, "git-"), path)
	cmd.Env = append(os.Environ(), backend.Environment()...)
	cmd.Env = append(cmd.Env, "GIT_PROTOCOL="+protocol)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return 1
	}
	cmd.Stdout, cmd.Stderr = channel, channel.Stderr()
	if err := cmd.Start(); err != nil {
		return 1
	}
	go func() {
		_, _ = io.Copy(stdin, channel)
		_ = stdin.Close()
	}()
	if err := cmd.Wait(); err != nil {
		return 1
	}
	return 0
}
