package gittest

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/tidemark-dev/tidemark/shared/gittest/backend"
)

// SSHOptions shape an SSH server.
type SSHOptions struct {
	// HostKeys are the types of its keys, in its order of preference: ed25519, ecdsa, rsa. None means ed25519.
	HostKeys []string
	// OldGit refuses the variable that asks for protocol v2.
	OldGit bool
	// Terse answers no request but that for the command.
	Terse bool
	// Passphrase encrypts the client's identity.
	Passphrase string
}

// SSHServer is another door to a Server's repositories: real git upload-pack and receive-pack over SSH.
type SSHServer struct {
	Addr     string // host:port
	Identity []byte // the one private key that it lets in, in PEM
	HostKeys map[string]ssh.PublicKey

	t        testing.TB
	root     string
	options  SSHOptions
	config   *ssh.ServerConfig
	listener net.Listener
	running  sync.WaitGroup
	ctx      context.Context
	conns    sync.Map // of *ssh.ServerConn
	shakes   atomic.Int64
	sessions atomic.Int64
}

// SSH opens the server's repositories over SSH until the test ends.
func (s *Server) SSH(options SSHOptions) *SSHServer {
	s.t.Helper()
	d := &SSHServer{t: s.t, root: s.Root, options: options, HostKeys: map[string]ssh.PublicKey{}}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	var block *pem.Block
	if options.Passphrase == "" {
		block, err = ssh.MarshalPrivateKey(private, "")
	} else {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte(options.Passphrase))
	}
	if err != nil {
		s.t.Fatal(err)
	}
	d.Identity = pem.EncodeToMemory(block)
	allowed, err := ssh.NewPublicKey(private.Public())
	if err != nil {
		s.t.Fatal(err)
	}
	d.config = &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if !bytes.Equal(key.Marshal(), allowed.Marshal()) {
			return nil, fmt.Errorf("unknown key")
		}
		return &ssh.Permissions{}, nil
	}}
	if len(options.HostKeys) == 0 {
		options.HostKeys = []string{"ed25519"}
	}
	for _, kind := range options.HostKeys {
		signer := HostKey(s.t, kind)
		d.HostKeys[kind] = signer.PublicKey()
		d.config.AddHostKey(signer)
	}
	if d.listener, err = new(net.ListenConfig).Listen(s.t.Context(), "tcp", "127.0.0.1:0"); err != nil {
		s.t.Fatal(err)
	}
	d.Addr = d.listener.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	d.ctx = ctx
	d.running.Go(d.accept)
	s.t.Cleanup(func() {
		cancel()
		_ = d.listener.Close()
		d.Drop()
		d.running.Wait()
	})
	return d
}

// HostKey makes a key of a type: ed25519, ecdsa or rsa.
func HostKey(t testing.TB, kind string) ssh.Signer {
	t.Helper()
	var key crypto.Signer
	var err error
	switch kind {
	case "ecdsa":
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "rsa":
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	default:
		_, key, err = ed25519.GenerateKey(rand.Reader)
	}
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromSigner(key)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

// URL is the address of a repository.
func (d *SSHServer) URL(name string) string { return "ssh://git@" + d.Addr + "/" + name }

// KnownHosts are the known_hosts lines of the server's keys of these types; none means all.
func (d *SSHServer) KnownHosts(kinds ...string) []byte {
	if len(kinds) == 0 {
		for kind := range d.HostKeys {
			kinds = append(kinds, kind)
		}
	}
	var b bytes.Buffer
	for _, kind := range kinds {
		b.Write(KnownHost(d.Addr, d.HostKeys[kind]))
	}
	return b.Bytes()
}

// KnownHost is one line of known_hosts.
func KnownHost(addr string, key ssh.PublicKey) []byte {
	host, port, _ := net.SplitHostPort(addr)
	name := "[" + host + "]:" + port
	if port == "22" {
		name = host
	}
	return append([]byte(name+" "), ssh.MarshalAuthorizedKey(key)...)
}

// Handshakes is the number of connections that were authenticated.
func (d *SSHServer) Handshakes() int { return int(d.shakes.Load()) }

// Sessions is the number of sessions that were opened.
func (d *SSHServer) Sessions() int { return int(d.sessions.Load()) }

// Drop hangs up on everybody who is connected now, and not on those who come back while it does.
func (d *SSHServer) Drop() {
	var connected []*ssh.ServerConn
	d.conns.Range(func(conn, _ any) bool {
		connected = append(connected, conn.(*ssh.ServerConn))
		return true
	})
	for _, conn := range connected {
		_ = conn.Close()
	}
}

func (d *SSHServer) accept() {
	for {
		conn, err := d.listener.Accept()
		if err != nil {
			return // the test has ended
		}
		d.running.Go(func() { d.serve(conn) })
	}
}

func (d *SSHServer) serve(nc net.Conn) {
	defer nc.Close()
	conn, channels, requests, err := ssh.NewServerConn(nc, d.config)
	if err != nil {
		return // the client will say why
	}
	d.shakes.Add(1)
	d.conns.Store(conn, true)
	defer d.conns.Delete(conn)
	go ssh.DiscardRequests(requests)
	var sessions sync.WaitGroup
	defer sessions.Wait()
	for channel := range channels {
		if channel.ChannelType() != "session" {
			_ = channel.Reject(ssh.UnknownChannelType, "sessions only")
			continue
		}
		accepted, requests, err := channel.Accept()
		if err != nil {
			return
		}
		d.sessions.Add(1)
		sessions.Go(func() { d.session(accepted, requests) })
	}
}

func (d *SSHServer) session(channel ssh.Channel, requests <-chan *ssh.Request) {
	defer channel.Close()
	protocol := ""
	for request := range requests {
		switch request.Type {
		case "env":
			var variable struct{ Name, Value string }
			known := ssh.Unmarshal(request.Payload, &variable) == nil && variable.Name == "GIT_PROTOCOL" && !d.options.OldGit
			if known {
				protocol = variable.Value
			}
			if !d.options.Terse {
				_ = request.Reply(known, nil)
			}
		case "exec":
			var command struct{ Line string }
			_ = ssh.Unmarshal(request.Payload, &command)
			_ = request.Reply(true, nil)
			go ssh.DiscardRequests(requests)
			status := d.run(channel, command.Line, protocol)
			_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{uint32(status)}))
			return
		default:
			_ = request.Reply(false, nil)
		}
	}
}

// run executes "git-upload-pack '/name'" in the folder of the repositories.
func (d *SSHServer) run(channel ssh.Channel, line, protocol string) int {
	service, quoted, _ := strings.Cut(line, " ")
	name := strings.TrimPrefix(strings.Trim(quoted, "'"), "/")
	service, ok := strings.CutPrefix(service, "git-")
	if !ok || service != "upload-pack" && service != "receive-pack" {
		fmt.Fprintf(channel.Stderr(), "no such command\n")
		return 127
	}
	ctx, cancel := context.WithCancel(d.ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", service, filepath.Join(d.root, filepath.FromSlash(name)))
	cmd.Env = append(os.Environ(), backend.Environment()...)
	if protocol != "" {
		cmd.Env = append(cmd.Env, "GIT_PROTOCOL="+protocol)
	}
	cmd.Stdout, cmd.Stderr = channel, channel.Stderr()
	input, err := cmd.StdinPipe()
	if err != nil {
		return 1
	}
	if err := cmd.Start(); err != nil {
		return 1
	}
	go func() {
		_, _ = io.Copy(input, channel)
		_ = input.Close()
	}()
	if err := cmd.Wait(); err != nil {
		return 1
	}
	return 0
}
