package gitwire

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/tidemark-dev/tidemark/shared/gitauth"
	"github.com/tidemark-dev/tidemark/shared/giturl"
)

// packetReaders are reused: a sweep reads thousands of short answers.
var packetReaders = sync.Pool{New: func() any { return NewPacketReader(nil) }}

func getPackets(r io.Reader) *PacketReader {
	packets := packetReaders.Get().(*PacketReader)
	packets.r.Reset(r)
	return packets
}

func putPackets(packets *PacketReader) {
	packets.r.Reset(nil)
	packetReaders.Put(packets)
}

// discover lists refs by way of GET info/refs. A server that turns out to speak v2 is asked again with a POST, now
// with its object format and at the place it redirected to.
func (p *Pool) discover(ctx context.Context, ep *giturl.Endpoint, cred *gitauth.Credentials, q wanted) (map[string]string, Knowledge, error) {
	resp, err := p.getInfoRefs(ctx, ep, cred, Request{Service: UploadPack, Version2: true, MaxResponse: maxListing})
	if err != nil {
		return nil, Knowledge{}, err
	}
	adv, err := readAdvertisement(resp.Reader, q)
	_ = resp.Close() // closing only drains
	if err != nil {
		return nil, Knowledge{}, err
	}
	learned := Knowledge{Protocol: ProtocolOld, ObjectFormat: adv.objectFormat}
	if !adv.version2 {
		return adv.refs, learned, nil
	}
	learned.Protocol = ProtocolV2
	refs, err := p.lsRefs(ctx, ep, cred, q, adv.objectFormat)
	return refs, learned, err
}

// listSSH lists refs in one session: its first words say which protocol the server speaks, and already hold the refs
// if it is an old one.
func (p *Pool) listSSH(ctx context.Context, ep *giturl.Endpoint, cred *gitauth.Credentials, q wanted) (refs map[string]string, err error) {
	resp, packets, s, err := p.greetSSH(ctx, ep, cred, Request{Service: UploadPack, Version2: true, MaxResponse: maxListing})
	if err != nil {
		return nil, err
	}
	defer resp.Close()
	defer func() {
		if err != nil {
			err = s.explain(transportError(ctx, err))
		}
	}()
	adv, err := readPackets(packets, q)
	if err != nil || !adv.version2 {
		return adv.refs, err
	}
	if _, err := s.stdin.Write(lsRefsRequest(q, adv.objectFormat)); err != nil {
		return nil, err
	}
	return readLsRefs(packets, q)
}

// advertisement is what a server says first: its capabilities, and from old servers its refs.
type advertisement struct {
	version2     bool
	objectFormat string
	refs         map[string]string
}

func readAdvertisement(r io.Reader, q wanted) (advertisement, error) {
	packets := getPackets(r)
	defer putPackets(packets)
	return readPackets(packets, q)
}

// readPackets reads an advertisement of any version up to its flush packet.
func readPackets(packets *PacketReader, q wanted) (advertisement, error) {
	adv := advertisement{refs: map[string]string{}}
	for first := true; ; {
		kind, line, err := packets.Line()
		switch {
		case err != nil:
			return advertisement{}, err
		case kind == Flush:
			return adv, nil
		case kind != Data:
			return advertisement{}, fmt.Errorf("%w: unexpected packet in an advertisement", ErrProtocol)
		}
		switch {
		case first && string(line) == "version 2":
			adv.version2 = true
			return readCapabilities(packets, adv)
		case first && string(line) == "version 1":
			continue
		case bytes.HasPrefix(line, []byte("shallow ")):
			continue
		}
		if first {
			var capabilities []byte
			line, capabilities, _ = bytes.Cut(line, []byte{0})
			for capability := range strings.FieldsSeq(string(capabilities)) {
				if format, ok := strings.CutPrefix(capability, "object-format="); ok {
					adv.objectFormat = format
				}
			}
			first = false
		}
		id, name, ok := bytes.Cut(line, []byte(" "))
		if !ok || !isID(id) || len(name) == 0 {
			return advertisement{}, fmt.Errorf("%w: malformed ref", ErrProtocol)
		}
		if q.has(name) {
			adv.refs[string(name)] = string(id)
		}
	}
}

func readCapabilities(packets *PacketReader, adv advertisement) (advertisement, error) {
	listsRefs := false
	for {
		kind, line, err := packets.Line()
		switch {
		case err != nil:
			return advertisement{}, err
		case kind == Flush && !listsRefs:
			return advertisement{}, fmt.Errorf("%w: protocol v2 without ls-refs", ErrProtocol)
		case kind == Flush:
			return adv, nil
		}
		if name, value, _ := strings.Cut(string(line), "="); name == "ls-refs" {
			listsRefs = true
		} else if name == "object-format" {
			adv.objectFormat = value
		}
	}
}

// skipServiceHeader takes "# service=…" and its flush packet off the beginning of an HTTP advertisement; with
// protocol v2 servers leave it out.
func skipServiceHeader(r io.Reader) (io.Reader, error) {
	br := bufio.NewReader(r)
	const mark = "# service="
	head, err := br.Peek(4 + len(mark))
	if err != nil || string(head[4:]) != mark {
		return br, nil // whoever reads on meets the error, or what else is there
	}
	packets := &PacketReader{r: br}
	for _, want := range []PacketKind{Data, Flush} {
		if kind, _, err := packets.Line(); err != nil {
			return nil, err
		} else if kind != want {
			return nil, fmt.Errorf("%w: malformed service header", ErrProtocol)
		}
	}
	return br, nil
}
