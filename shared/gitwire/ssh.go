package gitwire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/tidemark-dev/tidemark/shared/gitauth"
	"github.com/tidemark-dev/tidemark/shared/giturl"
)

// closeGrace is how long a server may take to confirm that a session is closed. A server that is silent even then
// is taken for dead, with its connection.
const closeGrace = 2 * time.Second

// sshSession is one run of a git service.
type sshSession struct {
	ctx     context.Context // of the exchange
	conn    *sshConn
	shared  bool
	session *ssh.Session
	stdin   io.WriteCloser
	stdout  *io.PipeReader // its end comes with the context's, which that of the channel would not
	stderr  *excerptWriter
	done    chan struct{} // closed when the server closed the session
	stop    func() bool
	closed  sync.Once
}

// startSSH runs a service, on a new connection if the shared one turns out to be lost.
func (p *Pool) startSSH(ctx context.Context, ep *giturl.Endpoint, cred *gitauth.Credentials, req Request) (*sshSession, error) {
	for {
		conn, fresh, err := p.sshClient(ctx, ep, cred)
		if err != nil {
			return nil, err
		}
		s, err := conn.start(ctx, ep, cred.SSH().Shareable(), req)
		if err == nil {
			return s, nil
		}
		conn.leave(cred.SSH().Shareable())
		// A connection that was lost while nobody used it is replaced; one just made is an error.
		if !fresh && ctx.Err() == nil && conn.lost() {
			p.forget(sshKey{ep.Address(), ep.User(), cred.Digest()}, conn)
			continue
		}
		return nil, fmt.Errorf("ssh session: %w", transportError(ctx, err))
	}
}

// start runs a service in a session of the connection. If it fails, the caller says leave.
func (c *sshConn) start(ctx context.Context, ep *giturl.Endpoint, shared bool, req Request) (*sshSession, error) {
	if c.enter() && !c.alive(ctx) {
		c.close()
		<-c.gone
		return nil, errConnLost
	}
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s := &sshSession{ctx: ctx, conn: c, shared: shared, stderr: &excerptWriter{}, done: make(chan struct{})}
	opened := make(chan error, 1)
	go func() { opened <- s.open(ep, req) }()
	select {
	case err := <-opened:
		if err != nil {
			<-c.slots
			return nil, err
		}
	case <-ctx.Done():
		// The server answers neither yes nor no: the connection is dead.
		c.close()
		<-opened //nolint:errcheck // the context's end is what counts
		<-c.slots
		return nil, ctx.Err()
	}
	s.stop = context.AfterFunc(ctx, s.abandon)
	return s, nil
}

// open starts the service; it may block for as long as the server is silent.
func (s *sshSession) open(ep *giturl.Endpoint, req Request) (err error) {
	if s.session, err = s.conn.client.NewSession(); err != nil {
		return err
	}
	if req.Version2 {
		// No answer is asked for, which saves a round trip: a server that refuses the variable answers an older
		// version, which is noticed.
		variable := ssh.Marshal(struct{ Name, Value string }{"GIT_PROTOCOL", "version=2"})
		if _, err = s.session.SendRequest("env", false, variable); err != nil {
			_ = s.session.Close()
			return err
		}
	}
	s.session.Stderr = s.stderr
	var output io.Reader
	if s.stdin, err = s.session.StdinPipe(); err == nil {
		if output, err = s.session.StdoutPipe(); err == nil {
			err = s.session.Start(string(req.Service) + " " + shellQuote(ep.Path()))
		}
	}
	if err != nil {
		_ = s.session.Close()
		return err
	}
	var into *io.PipeWriter
	s.stdout, into = io.Pipe()
	go func() {
		_, err := io.Copy(into, output)
		_ = into.CloseWithError(err)
	}()
	go func() {
		_ = s.session.Wait() // the exit status says less than the answer
		close(s.done)
	}()
	return nil
}

// abandon ends a session that nobody waits for any more. A server that does not confirm it loses the connection, so that
// nothing stays blocked on it: not even saying goodbye, to a server that has stopped reading.
func (s *sshSession) abandon() {
	_ = s.stdout.CloseWithError(s.ctx.Err())
	go s.session.Close() // done says whether it was heard
	select {
	case <-s.done:
	case <-time.After(closeGrace):
		s.conn.close()
	}
}

// Close ends the session.
func (s *sshSession) Close() error {
	s.closed.Do(func() {
		if s.stop() {
			go s.abandon()
		}
		<-s.conn.slots
		s.conn.leave(s.shared)
	})
	return nil
}

// words is what the server wrote to standard error, or err if it wrote nothing.
func (s *sshSession) words(err error) error {
	select {
	case <-s.done: // all of it has arrived
	case <-time.After(closeGrace):
	}
	if text := s.stderr.String(); text != "" {
		return &RemoteError{Text: text}
	}
	return err
}

// exchangeSSH skips what the server says first, sends the request and returns the answer.
func (p *Pool) exchangeSSH(ctx context.Context, ep *giturl.Endpoint, cred *gitauth.Credentials, req Request) (*Response, error) {
	resp, packets, s, err := p.greetSSH(ctx, ep, cred, req)
	if err != nil {
		return nil, err
	}
	for kind, first := Data, true; kind != Flush; first = false {
		var line []byte
		if kind, line, err = packets.Line(); err != nil {
			break
		}
		if first && req.Version2 && string(line) != "version 2" {
			err = ErrNoVersion2
			break
		}
	}
	if err == nil {
		if _, err = s.stdin.Write(req.Body); err == nil {
			err = s.stdin.Close()
		}
		if err = transportError(ctx, err); errors.Is(err, io.EOF) {
			err = ErrTruncated // the server ended the session before it had read all
		}
	}
	if err != nil {
		err = s.explain(err)
		_ = resp.Close()
		return nil, err
	}
	resp.Reader = &limitedReader{ctx: ctx, r: packets.r, left: limitOf(req)}
	return resp, nil
}

// explain prefers the server's words for an answer that broke off.
func (s *sshSession) explain(err error) error {
	if errors.Is(err, ErrTruncated) {
		return s.words(err)
	}
	return err
}

// advertiseSSH returns what the server says first, and says goodbye.
func (p *Pool) advertiseSSH(ctx context.Context, ep *giturl.Endpoint, cred *gitauth.Credentials, req Request) (*Response, error) {
	resp, packets, s, err := p.greetSSH(ctx, ep, cred, req)
	if err != nil {
		return nil, err
	}
	if _, err := packets.r.Peek(1); err != nil {
		err = s.words(transportError(ctx, err))
		_ = resp.Close()
		return nil, err
	}
	resp.Reader = packets.r
	return resp, nil
}

// greetSSH starts a session; the packets read what the server says first.
func (p *Pool) greetSSH(ctx context.Context, ep *giturl.Endpoint, cred *gitauth.Credentials, req Request) (*Response, *PacketReader, *sshSession, error) {
	s, err := p.startSSH(ctx, ep, cred, req)
	if err != nil {
		return nil, nil, nil, err
	}
	resp := &Response{close: s.Close}
	return resp, NewPacketReader(&limitedReader{ctx: ctx, r: s.stdout, left: limitOf(req)}), s, nil
}

func limitOf(req Request) int64 {
	if req.MaxResponse > 0 {
		return req.MaxResponse
	}
	return DefaultMaxResponse
}

// shellQuote quotes a path for the shell that runs on the server.
func shellQuote(s string) string {
	return "'" + strings.NewReplacer("'", `'\''`, "!", `'\!'`).Replace(s) + "'"
}

// excerptWriter keeps the beginning of what is written, and takes the rest without keeping it.
type excerptWriter struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (w *excerptWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text.Write(b[:min(len(b), 4*maxExcerpt-w.text.Len())])
	return len(b), nil
}

func (w *excerptWriter) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return printable(w.text.Bytes())
}
