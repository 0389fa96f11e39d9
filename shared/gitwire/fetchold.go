package gitwire

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-dev/tidemark/shared/gitauth"
	"github.com/tidemark-dev/tidemark/shared/gitobject"
	"github.com/tidemark-dev/tidemark/shared/giturl"
)

// FetchOld fetches what refs point at from a server without protocol v2: it reads the advertisement for what the server
// can do, then asks once, with multi_ack where that is offered (Azure Repos insists on it). A depth or a filter is
// used where the server knows it and left out where not: then more arrives, never less.
func (p *Pool) FetchOld(ctx context.Context, ep *giturl.Endpoint, cred *gitauth.Credentials, req FetchRequest) (map[gitobject.ID]gitobject.Object, error) {
	offered, err := p.offers(ctx, ep, cred, UploadPack)
	if err != nil {
		return nil, err
	}
	if req.Format, err = offered.format(); err != nil {
		return nil, err
	}
	body, shallow := req.version0(offered)
	resp, err := p.Exchange(ctx, ep, cred, Request{Service: UploadPack, Body: body, MaxResponse: maxFetch})
	if err != nil {
		return nil, err
	}
	defer resp.Close()
	return readFetchOld(NewPacketReader(resp), req.Format, shallow, offered.has("side-band-64k"))
}

// capabilities are what a server of the old protocol offers.
type capabilities []string

func (c capabilities) has(name string) bool { return slices.Contains(c, name) }

func (c capabilities) format() (gitobject.Format, error) {
	for _, each := range c {
		if name, found := strings.CutPrefix(each, "object-format="); found {
			return gitobject.FormatNamed(name)
		}
	}
	return gitobject.SHA1, nil
}

// offers reads the capabilities that a service's advertisement of refs carries.
func (p *Pool) offers(ctx context.Context, ep *giturl.Endpoint, cred *gitauth.Credentials, service Service) (capabilities, error) {
	resp, err := p.Advertise(ctx, ep, cred, Request{Service: service})
	if err != nil {
		return nil, err
	}
	defer resp.Close()
	in := NewPacketReader(resp)
	for {
		kind, line, err := in.Line()
		switch {
		case err != nil:
			return nil, err
		case kind != Data:
			return nil, nil // an empty repository, which UploadPack says nothing about
		case string(line) == "version 1":
			continue
		}
		_, list, found := strings.Cut(string(line), "\x00")
		if !found {
			return nil, fmt.Errorf("%w: an advertisement without capabilities", ErrProtocol)
		}
		return strings.Fields(list), nil
	}
}

// ObjectFormat asks for the object format of a repository that may be empty, in the way that every server
// understands. A listing over HTTP tells it too.
func (p *Pool) ObjectFormat(ctx context.Context, ep *giturl.Endpoint, cred *gitauth.Credentials) (gitobject.Format, error) {
	offered, err := p.offers(ctx, ep, cred, ReceivePack)
	if err != nil {
		return gitobject.SHA1, err
	}
	return offered.format()
}

// version0 is the request, and whether the answer begins with shallow lines.
func (r FetchRequest) version0(offered capabilities) ([]byte, bool) {
	use := []string{"agent=" + userAgent}
	for _, name := range []string{"side-band-64k", "ofs-delta", "no-progress"} {
		if offered.has(name) {
			use = append(use, name)
		}
	}
	switch {
	case offered.has("multi_ack_detailed"):
		use = append(use, "multi_ack_detailed")
	case offered.has("multi_ack"):
		use = append(use, "multi_ack")
	}
	if r.Format != gitobject.SHA1 {
		use = append(use, "object-format="+r.Format.String())
	}
	shallow, filter := r.Depth > 0 && offered.has("shallow"), r.Filter != "" && offered.has("filter")
	if shallow {
		use = append(use, "shallow")
	}
	if filter {
		use = append(use, "filter")
	}
	var b []byte
	for i, id := range r.Want {
		line := "want " + id.String()
		if i == 0 {
			line += " " + strings.Join(use, " ")
		}
		b = AppendPacket(b, line+"\n")
	}
	if shallow {
		b = AppendPacket(b, fmt.Sprintf("deepen %d\n", r.Depth))
	}
	if filter {
		b = AppendPacket(b, "filter "+r.Filter+"\n")
	}
	b = AppendFlush(b)
	for _, id := range r.Have {
		b = AppendPacket(b, "have "+id.String()+"\n")
	}
	return AppendPacket(b, "done\n"), shallow
}

func readFetchOld(in *PacketReader, f gitobject.Format, shallow, banded bool) (map[gitobject.ID]gitobject.Object, error) {
	for shallow {
		kind, _, err := in.Line()
		if err != nil {
			return nil, notServed(err)
		}
		shallow = kind == Data
	}
	// Acknowledgements follow, one for each common commit, and the last is NAK or an ACK without a status.
	for {
		kind, line, err := in.Line()
		if err != nil {
			return nil, notServed(err)
		}
		text := string(line)
		if kind != Data || text != "NAK" && !strings.HasPrefix(text, "ACK ") {
			return nil, fmt.Errorf("%w: neither an acknowledgement nor a pack", ErrProtocol)
		}
		if text == "NAK" || len(strings.Fields(text)) == 2 {
			break
		}
	}
	if !banded {
		return gitobject.ReadPack(f, in.r, gitobject.DefaultPackLimits)
	}
	return readPack(in, f)
}
