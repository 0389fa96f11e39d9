package gitwire_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/tidemark-dev/tidemark/shared/gitwire"
)

func TestPacketReader(t *testing.T) {
	tests := []struct {
		name, in string
		want     []string
		err      error
	}{
		{"data, special packets and the end", "0007abc0000000100020004", []string{"abc", "flush", "delim", "end", ""}, io.EOF},
		{"upper case lengths", "000Bdefghij", []string{"defghij"}, io.EOF},
		{"a newline belongs to the payload", "0006a\n", []string{"a\n"}, io.EOF},
		{"cut in the length", "00", nil, gitwire.ErrTruncated},
		{"cut in the payload", "0009ab", nil, gitwire.ErrTruncated},
		{"cut before the payload", "0009", nil, gitwire.ErrTruncated},
		{"a length that is no number", "zzzzabc", nil, gitwire.ErrProtocol},
		{"a length that cannot be", "0003", nil, gitwire.ErrProtocol},
		{"a web page", "<html>", nil, gitwire.ErrProtocol},
	}
	names := map[gitwire.PacketKind]string{gitwire.Flush: "flush", gitwire.Delim: "delim", gitwire.ResponseEnd: "end"}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := gitwire.NewPacketReader(strings.NewReader(tt.in))
			var got []string
			for {
				kind, payload, err := r.Next()
				if err != nil {
					if !errors.Is(err, tt.err) {
						t.Errorf("error %v, want %v", err, tt.err)
					}
					break
				}
				if kind == gitwire.Data {
					got = append(got, string(payload))
				} else {
					got = append(got, names[kind])
				}
			}
			if strings.Join(got, "|") != strings.Join(tt.want, "|") {
				t.Errorf("packets of %q: %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}

func TestPacketReaderLine(t *testing.T) {
	r := gitwire.NewPacketReader(strings.NewReader("0006a\n0019ERR no such thing\x07 ha\n"))
	if _, line, err := r.Line(); err != nil || string(line) != "a" {
		t.Fatalf("Line() = %q, %v, want a", line, err)
	}
	_, _, err := r.Line()
	var remote *gitwire.RemoteError
	if !errors.As(err, &remote) || remote.Text != "no such thing ha" {
		t.Fatalf("Line() of an ERR packet: %v", err)
	}
	if _, _, err := r.Line(); !errors.Is(err, gitwire.ErrTruncated) {
		t.Fatalf("Line() at the end: %v, want ErrTruncated", err)
	}
}

func TestAppendPacketRoundTrip(t *testing.T) {
	for _, size := range []int{0, 1, 4000, gitwire.MaxPayload} {
		in := strings.Repeat("x", size)
		b := gitwire.AppendFlush(gitwire.AppendDelim(gitwire.AppendPacket(nil, in)))
		r := gitwire.NewPacketReader(strings.NewReader(string(b)))
		kind, payload, err := r.Next()
		if err != nil || kind != gitwire.Data || string(payload) != in {
			t.Fatalf("packet of %d bytes came back as %v, %d bytes, %v", size, kind, len(payload), err)
		}
		for _, want := range []gitwire.PacketKind{gitwire.Delim, gitwire.Flush} {
			if kind, _, err := r.Next(); err != nil || kind != want {
				t.Fatalf("got %v, %v, want %v", kind, err, want)
			}
		}
	}
}
