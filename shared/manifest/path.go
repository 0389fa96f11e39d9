package manifest

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	clusterFolder = "_cluster" // no namespace can be spelled like this: a leading _ is written %5f
	extension     = ".yaml"
	maxSegment    = 255 // bytes of a file's name on the file systems git is checked out on
)

// Path is the place of an object in git:
//
//	{targetPath}/{namespace, or _cluster}/{group, left out for core}/{resource}/{name}.yaml
//
// Two different objects never share a path, also where a file system folds case or normalizes Unicode, and no
// part is a name that a file system or git refuses: a part is written in a-z 0-9 . _ - and every other byte as %xx
// (so `system:node` lies in system%3anode.yaml, and `Admin` in %41dmin.yaml). A part that is longer than a file's
// name may be is cut and ends in `%-` and its SHA-256. targetPath is taken as it is, without slashes at its ends.
func Path(targetPath string, gr schema.GroupResource, namespace, name string) string {
	parts := make([]string, 0, 5)
	if p := strings.Trim(targetPath, "/"); p != "" {
		parts = append(parts, p)
	}
	if namespace == "" {
		parts = append(parts, clusterFolder)
	} else {
		parts = append(parts, segment(namespace, maxSegment))
	}
	if gr.Group != "" {
		parts = append(parts, segment(gr.Group, maxSegment))
	}
	// A resource has no dot, so a folder can not be mistaken for a file of the folder above.
	resource := strings.ReplaceAll(segment(gr.Resource, maxSegment), ".", "%2e")
	parts = append(parts, resource, segment(name, maxSegment-len(extension))+extension)
	return strings.Join(parts, "/")
}

// Place is what a path says about the object that lies there.
type Place struct {
	schema.GroupResource
	Namespace string // empty for an object of the cluster
	Name      string // empty where the name was too long to be spelled out
}

// Parse reads a path that Path wrote for the same targetPath. It answers false for any other path, so that files
// which are not Tidemark's are left alone.
func Parse(targetPath, path string) (Place, bool) {
	if p := strings.Trim(targetPath, "/"); p != "" {
		rest, below := strings.CutPrefix(path, p+"/")
		if !below {
			return Place{}, false
		}
		path = rest
	}
	parts := strings.Split(path, "/")
	file, isYAML := strings.CutSuffix(parts[len(parts)-1], extension)
	if !isYAML || len(parts) < 3 || len(parts) > 4 {
		return Place{}, false
	}
	parts[len(parts)-1] = file
	for i, part := range parts {
		if i == 0 && part == clusterFolder {
			parts[i] = ""
			continue
		}
		s, ok := unsegment(part)
		if !ok {
			return Place{}, false
		}
		parts[i] = s
	}
	place := Place{Namespace: parts[0], Name: parts[len(parts)-1]}
	place.Resource = parts[len(parts)-2]
	if len(parts) == 4 {
		place.Group = parts[1]
	}
	if place.Name != "" && Path("", place.GroupResource, place.Namespace, place.Name) != path {
		return Place{}, false // a file that somebody else named almost like ours
	}
	return place, true
}

// segment writes one part of a path so that it can be read back (see unsegment), in at most max bytes.
func segment(s string, max int) string {
	var b strings.Builder
	device := isDevice(s)
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case i == 0 && (device || c == '.' || c == '_' || c == '-'), i == len(s)-1 && c == '.', !bare(c):
			b.WriteByte('%')
			b.WriteString(hex.EncodeToString([]byte{c}))
		default:
			b.WriteByte(c)
		}
	}
	out := b.String()
	if len(out) <= max {
		return out
	}
	sum := sha256.Sum256([]byte(s))
	tail := cutMark + hex.EncodeToString(sum[:])
	head := out[:max-len(tail)]
	if at := strings.LastIndexByte(head, '%'); at >= 0 && at > len(head)-3 {
		head = head[:at] // not through the middle of a %xx
	}
	return head + tail
}

// cutMark can not come from an escaped byte, whose % is followed by two hexadecimal digits.
const cutMark = "%-"

// unsegment is the inverse of segment; a part that was cut reads as "".
func unsegment(s string) (string, bool) {
	if len(s) > len(cutMark)+64 && s[len(s)-64-len(cutMark):len(s)-64] == cutMark {
		return "", true
	}
	out, err := url.PathUnescape(s)
	return out, err == nil && out != ""
}

func bare(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-'
}

// isDevice tells the names that Windows keeps for devices, with any ending: con, con.yaml, con.b.yaml.
func isDevice(s string) bool {
	base, _, _ := strings.Cut(s, ".")
	switch base {
	case "con", "prn", "aux", "nul":
		return true
	}
	return len(base) == 4 && (base[:3] == "com" || base[:3] == "lpt") && '0' <= base[3] && base[3] <= '9'
}
