package gitwire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/tidemark-dev/tidemark/shared/gitauth"
	"github.com/tidemark-dev/tidemark/shared/gitobject"
	"github.com/tidemark-dev/tidemark/shared/giturl"
)

// The filters that a Fetch can ask for.
const (
	NoTrees  = "tree:0"    // the commits and trees asked for, and nothing that they point at
	RootOnly = "tree:1"    // of a commit also its root tree
	NoBlobs  = "blob:none" // everything but file contents
)

// ErrNotServed is a server that does not give out an object that was asked for: it does not have it, or gives out
// only what a ref points at.
var ErrNotServed = errors.New("server does not serve the object")

// ErrNoFilter is a server that answered a fetch with a filter by nothing, as servers do that do not know or do not
// allow filters (and those that know nothing of protocol v2).
var ErrNoFilter = errors.New("server does not answer a filtered fetch")

// FetchRequest names the objects to be fetched.
type FetchRequest struct {
	Format gitobject.Format
	Want   []gitobject.ID // commits; with protocol v2 also trees
	Have   []gitobject.ID // commits whose history is not wanted
	Filter string         // NoTrees, RootOnly, NoBlobs, or empty for everything
	Depth  int            // commits to go back from each wanted one; 0 is no limit
}

// Fetch asks for objects by id with one protocol v2 request and returns the commits and trees of the answer, each
// named by the hash of what arrived. Blobs are read and dropped.
//
// Errors, besides Exchange's: ErrNotServed; ErrNoFilter and, without a filter, ErrNoVersion2 for an answer without a
// single byte; ErrTruncated for one that was cut; and a pack's own.
func (p *Pool) Fetch(ctx context.Context, ep *giturl.Endpoint, cred *gitauth.Credentials, req FetchRequest) (map[gitobject.ID]gitobject.Object, error) {
	resp, err := p.exchangeMoved(ctx, ep, cred, Request{Service: UploadPack, Version2: true, Body: req.version2(), MaxResponse: maxFetch})
	if err != nil {
		return nil, err
	}
	defer resp.Close()
	objects, err := readFetch(NewPacketReader(resp), req.Format)
	switch {
	case errors.Is(err, errNoAnswer) && req.Filter != "":
		return nil, ErrNoFilter
	case errors.Is(err, errNoAnswer):
		return nil, ErrNoVersion2
	}
	return objects, err
}

// maxFetch bounds the answer to a fetch. Without filters a server sends a whole snapshot.
const maxFetch = 4 << 30

func (r FetchRequest) version2() []byte {
	b := AppendPacket(nil, "command=fetch\n")
	b = AppendPacket(b, "agent="+userAgent+"\n")
	if r.Format != gitobject.SHA1 {
		b = AppendPacket(b, "object-format="+r.Format.String()+"\n")
	}
	b = AppendDelim(b)
	b = AppendPacket(b, "no-progress\n")
	b = AppendPacket(b, "ofs-delta\n")
	for _, id := range r.Want {
		b = AppendPacket(b, "want "+id.String()+"\n")
	}
	for _, id := range r.Have {
		b = AppendPacket(b, "have "+id.String()+"\n")
	}
	if r.Depth > 0 {
		b = AppendPacket(b, fmt.Sprintf("deepen %d\n", r.Depth))
	}
	if r.Filter != "" {
		b = AppendPacket(b, "filter "+r.Filter+"\n")
	}
	b = AppendPacket(b, "done\n")
	return AppendFlush(b)
}

// readFetch skips sections until the pack and reads that.
func readFetch(in *PacketReader, f gitobject.Format) (map[gitobject.ID]gitobject.Object, error) {
	if _, err := in.r.Peek(1); errors.Is(err, io.EOF) {
		return nil, errNoAnswer
	}
	for {
		kind, line, err := in.Line()
		if err != nil {
			return nil, notServed(err)
		}
		switch {
		case kind == Data && string(line) == "packfile":
			return readPack(in, f)
		case kind == Flush || kind == ResponseEnd:
			return nil, fmt.Errorf("%w: it holds no pack", ErrProtocol)
		}
	}
}

func readPack(in *PacketReader, f gitobject.Format) (map[gitobject.ID]gitobject.Object, error) {
	band := &sideband{in: in}
	objects, err := gitobject.ReadPack(f, band, gitobject.DefaultPackLimits)
	if err == nil {
		// What follows the pack is only padding, but reading it to its end leaves the connection usable.
		_, err = io.Copy(io.Discard, band)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = ErrTruncated
	}
	return objects, err
}

// notServed tells an object that is not given out from other complaints.
func notServed(err error) error {
	var remote *RemoteError
	if errors.As(err, &remote) {
		for _, words := range []string{"not our ref", "unadvertised object", "not valid: ", "bad object", "not found", "does not exist"} {
			if strings.Contains(remote.Text, words) {
				return fmt.Errorf("%w: %w", ErrNotServed, err)
			}
		}
	}
	return err
}

// sideband is the data band of a multiplexed stream, up to the flush packet. What the server says for people on
// band 2 is collected up to a limit; band 3 is a *RemoteError.
type sideband struct {
	in    *PacketReader
	data  []byte
	words bytes.Buffer
	done  bool
}

// maxWords is how much of the server's words is looked at.
const maxWords = 16 << 10

func (s *sideband) Read(p []byte) (int, error) {
	for len(s.data) == 0 {
		if s.done {
			return 0, io.EOF
		}
		kind, payload, err := s.in.Next()
		if errors.Is(err, io.EOF) {
			return 0, ErrTruncated
		}
		if err != nil {
			return 0, err
		}
		if err := s.take(kind, payload); err != nil {
			return 0, err
		}
	}
	n := copy(p, s.data)
	s.data = s.data[n:]
	return n, nil
}

func (s *sideband) take(kind PacketKind, payload []byte) error {
	switch {
	case kind != Data:
		s.done = true
	case len(payload) == 0:
	case payload[0] == 1:
		s.data = payload[1:]
	case payload[0] == 2:
		s.words.Write(payload[1:min(len(payload), 1+maxWords-min(maxWords, s.words.Len()))])
	case payload[0] == 3:
		return notServed(&RemoteError{Text: printable(payload[1:])})
	default:
		return fmt.Errorf("%w: unknown band %d", ErrProtocol, payload[0])
	}
	return nil
}
