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

// PushRequest moves one ref from one commit to another, if it still is at the first.
type PushRequest struct {
	Format gitobject.Format
	Ref    string
	Old    gitobject.ID // zero creates the ref
	New    gitobject.ID
	Pack   []byte // every object that the server lacks
}

// PushReport is what the server reported.
type PushReport struct {
	// Unpack is "ok", or why the pack was not taken.
	Unpack string
	// Refused is empty where the server said that it moved the ref, else its reason.
	Refused string
	// Words are what the server said for people, its hooks included: printable, bounded, without credentials.
	Words string
}

// Moved says that the pack was taken and the ref moved. Nothing else is success.
func (r *PushReport) Moved() bool { return r.Unpack == "ok" && r.Refused == "" }

// Push sends one request to receive-pack, without asking for its refs first: the old id is the compare-and-swap.
//
// An error means that there is no complete report, so the push may or may not have happened, except that a
// *StatusError below 500 and gitauth's errors mean it did not. The report holds the server's words even then.
func (p *Pool) Push(ctx context.Context, ep *giturl.Endpoint, cred *gitauth.Credentials, req PushRequest) (*PushReport, error) {
	if CheckRefName(req.Ref) != nil {
		return &PushReport{}, fmt.Errorf("ref to push: %w", ErrRefName)
	}
	resp, err := p.exchangeMoved(ctx, ep, cred, Request{Service: ReceivePack, Body: req.encode(), MaxResponse: maxReport})
	if err != nil {
		return &PushReport{}, err
	}
	defer resp.Close()
	return ReadPushReport(resp, req.Ref)
}

// exchangeMoved is Exchange for a repository that may have moved within its origin: a redirected POST did nothing, so
// once the new place is discovered it is sent there.
func (p *Pool) exchangeMoved(ctx context.Context, ep *giturl.Endpoint, cred *gitauth.Credentials, req Request) (*Response, error) {
	resp, err := p.Exchange(ctx, ep, cred, req)
	if !errors.Is(err, ErrRedirect) {
		return resp, err
	}
	offer, discovery := p.Advertise(ctx, ep, cred, Request{Service: req.Service, Version2: req.Version2})
	if discovery != nil {
		return nil, discovery
	}
	if err := offer.Close(); err != nil {
		return nil, err
	}
	return p.Exchange(ctx, ep, cred, req)
}

// maxReport bounds the answer to a push, in which hooks may talk at length.
const maxReport = 8 << 20

func (r PushRequest) encode() []byte {
	capabilities := "report-status side-band-64k agent=" + userAgent
	if r.Format != gitobject.SHA1 {
		capabilities += " object-format=" + r.Format.String()
	}
	command := fmt.Sprintf("%s %s %s\x00 %s", r.Old.Wire(r.Format), r.New.Wire(r.Format), r.Ref, capabilities)
	return append(AppendFlush(AppendPacket(nil, command)), r.Pack...)
}

// ReadPushReport reads a report for ref, as it is or multiplexed in side bands. Only a report that ends with its flush packet is one.
func ReadPushReport(r io.Reader, ref string) (*PushReport, error) {
	in := NewPacketReader(r)
	kind, payload, err := in.Next()
	if errors.Is(err, io.EOF) || err == nil && kind != Data {
		return &PushReport{}, fmt.Errorf("%w: no report", ErrTruncated)
	}
	if err != nil {
		return &PushReport{}, err
	}
	if len(payload) > 0 && payload[0] >= 1 && payload[0] <= 3 {
		band := &sideband{in: in}
		report := &PushReport{}
		if err = band.take(kind, payload); err == nil {
			report, err = readReport(NewPacketReader(band), ref)
		}
		if err == nil {
			_, err = io.Copy(io.Discard, band) // the hooks that run after the update still talk
			err = ignoreTruncated(err)
		}
		report.Words = printableLines(band.words.Bytes())
		return report, err
	}
	report := &PushReport{}
	return report, report.read(in, ref, payload)
}

// ignoreTruncated: the report is complete, so a cut behind it takes nothing back.
func ignoreTruncated(err error) error {
	if errors.Is(err, ErrTruncated) {
		return nil
	}
	return err
}

func readReport(in *PacketReader, ref string) (*PushReport, error) {
	report := &PushReport{}
	kind, line, err := in.Line()
	if err != nil {
		return report, err
	}
	if kind != Data {
		return report, fmt.Errorf("%w: an empty report", ErrProtocol)
	}
	return report, report.read(in, ref, line)
}

// read reads the lines of a report, the first of which has been read already.
func (r *PushReport) read(in *PacketReader, ref string, line []byte) error {
	mentioned := false
	for first := true; ; first = false {
		text := strings.TrimSuffix(string(line), "\n")
		switch {
		case first && strings.HasPrefix(text, "unpack "):
			r.Unpack = printable(strings.TrimPrefix(text, "unpack "))
		case first && strings.HasPrefix(text, "ERR "):
			return &RemoteError{Text: printable(text[4:])}
		case first:
			return fmt.Errorf("%w: a report that does not begin with unpack", ErrProtocol)
		case text == "ok "+ref:
			mentioned = true
		case strings.HasPrefix(text, "ng "+ref+" "):
			mentioned = true
			r.Refused = printable(strings.TrimPrefix(text, "ng "+ref+" "))
			if r.Refused == "" {
				r.Refused = "refused"
			}
		}
		kind, next, err := in.Line()
		if err != nil {
			return err
		}
		if kind != Data {
			break
		}
		line = next
	}
	if !mentioned && r.Unpack == "ok" {
		return fmt.Errorf("%w: the report says nothing about the ref", ErrProtocol)
	}
	if !mentioned {
		r.Refused = "not reported"
	}
	return nil
}

// printableLines keeps what a server says for people as lines, bounded.
func printableLines(text []byte) string {
	const limit = 1000
	var out []string
	size := 0
	for line := range bytes.Lines(text) {
		if i := bytes.LastIndexByte(bytes.TrimRight(line, "\r\n"), '\r'); i >= 0 {
			line = line[i+1:] // progress that overwrites itself
		}
		clean := printable(line)
		if clean == "" {
			continue
		}
		if size += len(clean) + 1; size > limit {
			out = append(out, "…")
			break
		}
		out = append(out, clean)
	}
	return strings.Join(out, "\n")
}
