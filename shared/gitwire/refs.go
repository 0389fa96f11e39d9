package gitwire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/tidemark-dev/tidemark/shared/gitauth"
	"github.com/tidemark-dev/tidemark/shared/giturl"
)

// maxListing limits the answer of a listing: 400,000 refs of ordinary length.
const maxListing = 32 << 20

// Protocol is the version that a server was seen to speak.
type Protocol byte

// The protocols. The zero value is "not known yet".
const (
	ProtocolUnknown Protocol = iota
	ProtocolOld              // v0 or v1: refs come with the advertisement only
	ProtocolV2
)

// Knowledge is what a listing learns about a repository that saves the next listing requests. A wrong one costs
// requests and never a wrong answer.
type Knowledge struct {
	Protocol     Protocol
	ObjectFormat string // "" for sha1
}

// wanted are the refs to list: full names, or beginnings that end with a slash. None means every ref.
type wanted []string

// ErrRefName is a ref name that no repository can hold, or that could smuggle something into a request.
var ErrRefName = errors.New("not a valid ref name")

// CheckRefName refuses ref names that git refuses. It wants no particular prefix.
func CheckRefName(name string) error {
	if name == "" || name == "@" || len(name) > 1024 || strings.HasPrefix(name, "-") ||
		strings.HasSuffix(name, ".") || strings.ContainsAny(name, " ~^:?*[\\") || strings.Contains(name, "..") || strings.Contains(name, "@{") {
		return ErrRefName
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock") {
			return ErrRefName
		}
	}
	for i := range len(name) {
		if name[i] < 0x20 || name[i] == 0x7f {
			return ErrRefName
		}
	}
	return nil
}

// ListRefs lists refs: full name to hex id, and for an annotated tag also name^{} to the id it peels to. Names are full
// names (refs/heads/main) or beginnings that end with a slash (refs/tags/); none means every ref. HEAD is no ref. An
// empty map means that the complete answer held none.
//
// Over HTTP it is one POST, without discovery. Where the answer shows that the server does not know protocol v2 or
// uses another object format (an old server, or a proxy that drops the header, answers with nothing at all), the
// refs are discovered with GET info/refs, and the returned Knowledge leads there directly next time. Only the flush
// packet proves a list complete: an answer without it is ErrTruncated.
func (p *Pool) ListRefs(ctx context.Context, ep *giturl.Endpoint, cred *gitauth.Credentials, names []string, known Knowledge) (map[string]string, Knowledge, error) {
	q := wanted(names)
	for _, name := range q {
		if err := CheckRefName(strings.TrimSuffix(name, "/")); err != nil {
			return nil, known, err
		}
	}
	if ep.IsSSH() {
		refs, err := p.listSSH(ctx, ep, cred, q)
		return refs, Knowledge{}, err
	}
	var refused error
	if known.Protocol != ProtocolOld {
		refs, err := p.lsRefs(ctx, ep, cred, q, known.ObjectFormat)
		if err == nil {
			known.Protocol = ProtocolV2
			return refs, known, nil
		}
		if !worthDiscovery(err, known) {
			return nil, known, err
		}
		refused = err
	}
	refs, learned, err := p.discover(ctx, ep, cred, q)
	var remote *RemoteError
	if err != nil && errors.As(refused, &remote) {
		err = refused // the server's own words say more than the failure of asking again
	}
	if err != nil {
		return nil, known, err
	}
	return refs, learned, nil
}

// errNoAnswer is a 200 with an empty body: what git's own server says to a v2 request whose header was lost, or
// whose object format is not the repository's.
var errNoAnswer = fmt.Errorf("%w: it is empty", ErrTruncated)

// worthDiscovery says whether a refused POST may mean "ask in the old way".
func worthDiscovery(err error, known Knowledge) bool {
	var status *StatusError
	var remote *RemoteError
	switch {
	case errors.As(err, &status):
		switch status.Code {
		case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotAcceptable,
			http.StatusGone, http.StatusLengthRequired, http.StatusUnsupportedMediaType, http.StatusNotImplemented:
			return true
		case http.StatusInternalServerError:
			return known.Protocol == ProtocolUnknown // some servers stumble over a request that they do not know
		}
		return false
	case errors.As(err, &remote):
		return known.Protocol == ProtocolUnknown
	}
	return errors.Is(err, errNoAnswer) || errors.Is(err, ErrRedirect) || errors.Is(err, ErrProtocol)
}

// lsRefs is the single POST.
func (p *Pool) lsRefs(ctx context.Context, ep *giturl.Endpoint, cred *gitauth.Credentials, q wanted, format string) (map[string]string, error) {
	resp, err := p.post(ctx, ep, cred, Request{Service: UploadPack, Version2: true, Body: lsRefsRequest(q, format), MaxResponse: maxListing})
	if err != nil {
		return nil, err
	}
	defer resp.Close()
	packets := getPackets(resp)
	defer putPackets(packets)
	if _, err := packets.r.Peek(1); errors.Is(err, io.EOF) {
		return nil, errNoAnswer
	}
	return readLsRefs(packets, q)
}

func lsRefsRequest(q wanted, format string) []byte {
	b := make([]byte, 0, 256)
	b = AppendPacket(b, "command=ls-refs\n")
	b = AppendPacket(b, "agent="+userAgent+"\n")
	if format != "" && format != "sha1" {
		b = AppendPacket(b, "object-format="+format+"\n")
	}
	b = AppendDelim(b)
	b = AppendPacket(b, "peel\n")
	if len(q) == 0 {
		// Some servers list HEAD only when nothing is asked for.
		b = AppendPacket(b, "ref-prefix refs/\n")
	}
	for _, name := range q {
		b = AppendPacket(b, "ref-prefix "+name+"\n")
	}
	return AppendFlush(b)
}

// readLsRefs reads "<id> <name>[ peeled:<id>][ <attribute>…]" up to the flush packet.
func readLsRefs(packets *PacketReader, q wanted) (map[string]string, error) {
	refs := map[string]string{}
	for {
		kind, line, err := packets.Line()
		switch {
		case err != nil:
			return nil, err
		case kind == Flush:
			return refs, nil
		case kind != Data:
			return nil, fmt.Errorf("%w: unexpected packet in a list of refs", ErrProtocol)
		}
		id, rest, ok := bytes.Cut(line, []byte(" "))
		if ok && string(id) == "unborn" {
			continue // HEAD of an empty repository
		}
		name, attributes, _ := bytes.Cut(rest, []byte(" "))
		if !ok || !isID(id) || len(name) == 0 {
			return nil, fmt.Errorf("%w: malformed ref", ErrProtocol)
		}
		if !q.has(name) {
			continue
		}
		refs[string(name)] = string(id)
		for len(attributes) > 0 {
			var attribute []byte
			attribute, attributes, _ = bytes.Cut(attributes, []byte(" "))
			if peeled, ok := bytes.CutPrefix(attribute, []byte("peeled:")); ok {
				if !isID(peeled) {
					return nil, fmt.Errorf("%w: malformed ref", ErrProtocol)
				}
				refs[string(name)+"^{}"] = string(peeled)
			}
		}
	}
}

// has says whether a ref, peeled or not, is wanted. Servers send every ref that begins with a name.
func (q wanted) has(ref []byte) bool {
	if !bytes.HasPrefix(ref, []byte("refs/")) {
		return false
	}
	if len(q) == 0 {
		return true
	}
	ref = bytes.TrimSuffix(ref, []byte("^{}"))
	for _, name := range q {
		if string(ref) == name || strings.HasSuffix(name, "/") && len(ref) > len(name) && string(ref[:len(name)]) == name {
			return true
		}
	}
	return false
}

// isID recognises a SHA-1 or SHA-256 object id in hex.
func isID(b []byte) bool {
	if len(b) != 40 && len(b) != 64 {
		return false
	}
	for _, c := range b {
		if (c < '0' || '9' < c) && (c < 'a' || 'f' < c) {
			return false
		}
	}
	return true
}
