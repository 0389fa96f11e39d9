package gitwire

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-dev/tidemark/shared/gitobject"
)

// answerOf is a server's answer to a fetch: a shallow section, a few words, and a pack in small packets.
func answerOf(t *testing.T, objects ...gitobject.Object) []byte {
	t.Helper()
	pack, err := gitobject.EncodePack(gitobject.SHA1, objects)
	if err != nil {
		t.Fatal(err)
	}
	b := AppendPacket(nil, "shallow-info\n")
	b = AppendPacket(b, "shallow "+strings.Repeat("ab", 20))
	b = AppendDelim(b)
	b = AppendPacket(b, "packfile\n")
	b = AppendPacket(b, "\x02Enumerating objects: 2, done.\n")
	for chunk := range slicesOf(pack, 7) {
		b = AppendPacket(b, append([]byte{1}, chunk...))
	}
	return AppendFlush(b)
}

func slicesOf(b []byte, n int) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(b) > 0 {
			k := min(n, len(b))
			if !yield(b[:k]) {
				return
			}
			b = b[k:]
		}
	}
}

func fewObjects() (tree, commit gitobject.Object) {
	tree = gitobject.New(gitobject.SHA1, gitobject.TreeType, nil)
	commit = gitobject.New(gitobject.SHA1, gitobject.CommitType, gitobject.Commit{Tree: tree.ID, Message: "m"}.Encode())
	return tree, commit
}

func TestAFetchIsWholeOrAnError(t *testing.T) {
	tree, commit := fewObjects()
	blob := gitobject.New(gitobject.SHA1, gitobject.BlobType, []byte("dropped"))
	whole := answerOf(t, tree, blob, commit)
	got, err := readFetch(NewPacketReader(bytes.NewReader(whole)), gitobject.SHA1)
	if err != nil || len(got) != 2 || !bytes.Equal(got[commit.ID].Data, commit.Data) {
		t.Fatalf("whole: got %v, %v; want the tree and the commit", got, err)
	}
	for cut := range whole {
		if got, err := readFetch(NewPacketReader(bytes.NewReader(whole[:cut])), gitobject.SHA1); err == nil {
			t.Errorf("cut after %d of %d bytes: got %d objects and no error", cut, len(whole), len(got))
		}
	}
}

func TestWhatAServerSaysInsteadOfAPack(t *testing.T) {
	id := strings.Repeat("ab", 20)
	cases := []struct {
		name   string
		answer []byte
		want   error
	}{
		{"nothing at all", nil, errNoAnswer},
		{"a flush only", AppendFlush(nil), ErrProtocol},
		{"an object that it does not give out", AppendPacket(nil, "ERR upload-pack: not our ref "+id), ErrNotServed},
		{"the same after it began", AppendPacket(AppendPacket(nil, "packfile\n"), "\x03upload-pack: not our ref "+id), ErrNotServed},
		{"a web page", []byte("<!DOCTYPE html><html>Sign in</html>"), ErrProtocol},
		{"a band that does not exist", AppendPacket(AppendPacket(nil, "packfile\n"), "\x07x"), ErrProtocol},
	}
	for _, c := range cases {
		if got, err := readFetch(NewPacketReader(bytes.NewReader(c.answer)), gitobject.SHA1); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, %v; want %v", c.name, got, err, c.want)
		}
	}
	var remote *RemoteError
	_, err := readFetch(NewPacketReader(bytes.NewReader(AppendPacket(nil, "ERR access denied for https://bob:hunter2@git.example.com"))), gitobject.SHA1)
	if !errors.As(err, &remote) || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("an error packet: got %v", err)
	}
}

func TestTheOldProtocolsAnswers(t *testing.T) {
	tree, commit := fewObjects()
	pack, err := gitobject.EncodePack(gitobject.SHA1, []gitobject.Object{tree, commit})
	if err != nil {
		t.Fatal(err)
	}
	id := strings.Repeat("ab", 20)
	banded := AppendFlush(AppendPacket(nil, append([]byte{1}, pack...)))
	shallow := AppendFlush(AppendPacket(nil, "shallow "+id))
	nak, ack := AppendPacket(nil, "NAK\n"), AppendPacket(AppendPacket(nil, "ACK "+id+" common\n"), "ACK "+id+"\n")
	cases := []struct {
		name            string
		answer          []byte
		shallow, banded bool
		fails           bool
	}{
		{"no common commit", join(nak, banded), false, true, false},
		{"shallow", join(shallow, nak, banded), true, true, false},
		{"common commits", join(ack, banded), false, true, false},
		{"without bands", join(nak, pack), false, false, false},
		{"no acknowledgement", banded, false, true, true},
		{"an error instead", AppendPacket(nil, "ERR upload-pack: not our ref "+id), false, true, true},
		{"cut", join(nak, banded[:len(banded)-9]), false, true, true},
	}
	for _, c := range cases {
		got, err := readFetchOld(NewPacketReader(bytes.NewReader(c.answer)), gitobject.SHA1, c.shallow, c.banded)
		if (err != nil) != c.fails || !c.fails && len(got) != 2 {
			t.Errorf("%s: got %d objects, %v; want an error: %v", c.name, len(got), err, c.fails)
		}
	}
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// TestTheOldRequestUsesWhatIsOffered: a capability that was not offered ends the connection on some servers.
func TestTheOldRequestUsesWhatIsOffered(t *testing.T) {
	request := FetchRequest{Want: []gitobject.ID{gitobject.MustParseID(strings.Repeat("ab", 20))}, Depth: 1, Filter: NoBlobs}
	cases := []struct {
		offered string
		want    []string
		without []string
	}{
		{"multi_ack thin-pack side-band side-band-64k ofs-delta shallow no-progress", []string{" multi_ack ", " side-band-64k ", " shallow\n", "deepen 1\n", "done\n"}, []string{"filter", "multi_ack_detailed", "thin-pack", "object-format"}},
		{"multi_ack_detailed filter shallow", []string{" multi_ack_detailed ", " filter\n", "filter blob:none\n", "deepen 1\n"}, []string{"side-band", "ofs-delta"}},
		{"", []string{"want ", "done\n"}, []string{"multi_ack", "deepen", "filter", "shallow", "side-band"}},
	}
	for _, c := range cases {
		body, shallow := request.version0(strings.Fields(c.offered))
		if shallow != strings.Contains(c.offered, "shallow") {
			t.Errorf("%q: the answer begins with shallow lines: %v", c.offered, shallow)
		}
		for _, want := range c.want {
			if !strings.Contains(string(body), want) {
				t.Errorf("%q: the request lacks %q: %q", c.offered, want, body)
			}
		}
		for _, without := range c.without {
			if strings.Contains(string(body), without) {
				t.Errorf("%q: the request holds %q: %q", c.offered, without, body)
			}
		}
	}
}

func TestAPushNamesFormatAndOldID(t *testing.T) {
	id := gitobject.MustParseID(strings.Repeat("cd", 32))
	got := string(PushRequest{Format: gitobject.SHA256, Ref: "refs/heads/main", New: id, Pack: []byte("PACK")}.encode())
	want := fmt.Sprintf("%s %s refs/heads/main\x00 report-status side-band-64k agent=%s object-format=sha256", strings.Repeat("0", 64), id, userAgent)
	if got != string(AppendFlush(AppendPacket(nil, want)))+"PACK" {
		t.Errorf("got %q, want %q", got, want)
	}
}
