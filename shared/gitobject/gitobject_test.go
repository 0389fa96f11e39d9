package gitobject_test

import (
	"bytes"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-dev/tidemark/shared/gitobject"
	"github.com/tidemark-dev/tidemark/shared/gittest"
)

func TestIDs(t *testing.T) {
	for _, text := range []string{strings.Repeat("ab", 20), strings.Repeat("cd", 32)} {
		id, err := gitobject.ParseID(text)
		if err != nil || id.String() != text || id.IsZero() || id.Wire(id.Format()) != text {
			t.Errorf("%s: got %s, %v", text, id, err)
		}
	}
	for _, zeros := range []string{strings.Repeat("0", 40), strings.Repeat("0", 64)} {
		if id, err := gitobject.ParseID(zeros); err != nil || id != (gitobject.ID{}) {
			t.Errorf("%d zeros: got %v, %v; want the zero ID", len(zeros), id, err)
		}
	}
	for _, bad := range []string{"", "main", strings.Repeat("a", 39), strings.Repeat("g", 40), strings.Repeat("a", 64) + " "} {
		if id, err := gitobject.ParseID(bad); err == nil {
			t.Errorf("%q: got %s, want an error", bad, id)
		}
	}
	if got := (gitobject.ID{}).Wire(gitobject.SHA256); got != strings.Repeat("0", 64) {
		t.Errorf("no object in a SHA-256 repository: got %s", got)
	}
}

// TestAgreesWithGit hashes, sorts and reads what git itself hashed, sorted and wrote.
func TestAgreesWithGit(t *testing.T) {
	for _, format := range []gitobject.Format{gitobject.SHA1, gitobject.SHA256} {
		t.Run(format.String(), func(t *testing.T) {
			server := gittest.NewServer(t)
			repo := server.Repository("r.git")
			if format == gitobject.SHA256 {
				repo = server.RepositorySHA256("r2.git")
			}
			repo.Commit("main", "names that sort in odd ways", map[string]string{"a.b": "1", "a/x": "2", "a-b/x": "3", "a0": "4", "ab": "5", "a b": "6", "B": "7", "ž/x": "8"})
			for _, name := range []string{"main", "main^{tree}", "main:a", "main:a.b"} {
				kind := repo.Git("cat-file", "-t", name)
				want := repo.Git("rev-parse", name)
				data, err := exec.Command("git", "-C", repo.Dir, "cat-file", kind, name).Output()
				if err != nil {
					t.Fatal(err)
				}
				types := map[string]gitobject.Type{"commit": gitobject.CommitType, "tree": gitobject.TreeType, "blob": gitobject.BlobType}
				o := gitobject.New(format, types[kind], data)
				if o.ID.String() != want {
					t.Errorf("%s: got %s, want %s", name, o.ID, want)
				}
				if kind == "tree" {
					entries, err := gitobject.ParseTree(format, data)
					if err != nil {
						t.Fatal(err)
					}
					slices.Reverse(entries)
					if got := gitobject.EncodeTree(format, entries); !bytes.Equal(got, data) {
						t.Errorf("%s: written again got\n%q, want\n%q", name, got, data)
					}
				}
				if kind == "commit" {
					c, err := gitobject.ParseCommit(data)
					if err != nil || !bytes.Equal(c.Encode(), append(bytes.Clone(data), 0x0a)) { // fast-import leaves the last line end out
						t.Errorf("%s: written again got %q (%v), want %q", name, c.Encode(), err, data)
					}
				}
				back, err := gitobject.FromLoose(o.ID, o.Loose())
				if err != nil || back.Type != o.Type || !bytes.Equal(back.Data, data) {
					t.Errorf("%s: from its loose form: %v", name, err)
				}
				for _, forged := range [][]byte{nil, o.Loose()[:len(o.Loose())-1], append(o.Loose(), 'x'), bytes.Replace(o.Loose(), []byte(kind), []byte("blub"), 1)} {
					if _, err := gitobject.FromLoose(o.ID, forged); err == nil {
						t.Errorf("%s: %q was taken for it", name, forged)
					}
				}
			}
		})
	}
}

// TestReadsPacksOfGit reads packs with deltas, by offset and by id, as git makes them, whole and damaged.
func TestReadsPacksOfGit(t *testing.T) {
	for _, format := range []gitobject.Format{gitobject.SHA1, gitobject.SHA256} {
		server := gittest.NewServer(t)
		repo := server.Repository("r.git")
		if format == gitobject.SHA256 {
			repo = server.RepositorySHA256("r2.git")
		}
		repo.Fill("main", 400)
		for i := range 30 {
			repo.Commit("main", "more", map[string]string{"clusters/prod/ns-000/res-000/object-0.yaml": strings.Repeat("x", i+1)})
		}
		repo.Git("tag", "-a", "-m", "a tag", "v1", "main")
		var want []string
		for line := range strings.Lines(repo.Git("cat-file", "--batch-all-objects", "--batch-check")) {
			if fields := strings.Fields(line); fields[1] == "commit" || fields[1] == "tree" {
				want = append(want, fields[0])
			}
		}
		slices.Sort(want)
		for _, flags := range [][]string{{"--no-reuse-delta", "--delta-base-offset"}, {"--no-reuse-delta"}, {"--window=0", "--no-reuse-delta"}} {
			args := append([]string{"-C", repo.Dir, "pack-objects", "--all", "--stdout", "--quiet"}, flags...)
			pack, err := exec.Command("git", args...).Output()
			if err != nil {
				t.Fatal(err)
			}
			objects, err := gitobject.ReadPack(format, bytes.NewReader(pack), gitobject.DefaultPackLimits)
			if err != nil {
				t.Errorf("%s, %v: %v", format, flags, err)
			}
			var got []string
			for id, o := range objects {
				got = append(got, id.String())
				if gitobject.New(format, o.Type, o.Data).ID != id {
					t.Errorf("%s, %v: %s is not its content's id", format, flags, id)
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("%s, %v: got %d commits and trees, want %d", format, flags, len(got), len(want))
			}
			for _, cut := range []int{0, 3, 11, 12, 40, len(pack) / 2, len(pack) - 21, len(pack) - 1} {
				if _, err := gitobject.ReadPack(format, bytes.NewReader(pack[:cut]), gitobject.DefaultPackLimits); err == nil {
					t.Errorf("%s, %v: cut after %d bytes was taken for whole", format, flags, cut)
				}
			}
			for at := 0; at < len(pack); at += len(pack) / 97 {
				broken := bytes.Clone(pack)
				broken[at] ^= 0x10
				if _, err := gitobject.ReadPack(format, bytes.NewReader(broken), gitobject.DefaultPackLimits); err == nil {
					t.Errorf("%s, %v: a flipped bit at %d went unnoticed", format, flags, at)
				}
			}
			for name, limits := range map[string]gitobject.PackLimits{"objects": {Objects: 10, Bytes: 1 << 20}, "bytes": {Objects: 1 << 20, Bytes: 1000}} {
				if _, err := gitobject.ReadPack(format, bytes.NewReader(pack), limits); err == nil {
					t.Errorf("%s, %v: the limit of %s did not hold", format, flags, name)
				}
			}
		}
	}
}

// TestGitReadsOurPacks feeds a pack to git index-pack with its strict checks.
func TestGitReadsOurPacks(t *testing.T) {
	for _, format := range []gitobject.Format{gitobject.SHA1, gitobject.SHA256} {
		var objects []gitobject.Object
		for _, size := range []int{0, 1, 15, 16, 127, 128, 2047, 2048, 100_000} {
			objects = append(objects, gitobject.New(format, gitobject.BlobType, bytes.Repeat([]byte("x"), size)))
		}
		tree := gitobject.New(format, gitobject.TreeType, gitobject.EncodeTree(format, []gitobject.Entry{{Name: "f", Mode: gitobject.File, ID: objects[0].ID}}))
		objects = append(objects, tree, gitobject.New(format, gitobject.CommitType, gitobject.Commit{Tree: tree.ID, Message: "m"}.Encode()))
		pack, err := gitobject.EncodePack(format, objects)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		file := filepath.Join(dir, "our.pack")
		if err := os.WriteFile(file, pack, 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("git", "-C", dir, "index-pack", "--strict", "--object-format="+format.String(), file).CombinedOutput()
		if err != nil {
			t.Errorf("%s: git index-pack: %v\n%s", format, err, out)
		}
		trailer := hex.EncodeToString(pack[len(pack)-format.Size():])
		if !strings.Contains(string(out), trailer) {
			t.Errorf("%s: git reads checksum %s, want %s", format, out, trailer)
		}
	}
}

func TestRefusesMalformedObjects(t *testing.T) {
	for _, bad := range []string{"100644 a", "100644 a\x00short", "x a\x00aaaaaaaaaaaaaaaaaaaa", "100644\x00", " a\x00aaaaaaaaaaaaaaaaaaaa", "100644 \x00aaaaaaaaaaaaaaaaaaaa"} {
		if entries, err := gitobject.ParseTree(gitobject.SHA1, []byte(bad)); err == nil {
			t.Errorf("%q: got %v, want an error", bad, entries)
		}
	}
	for _, bad := range []string{"", "tree x\n\n", "parent " + strings.Repeat("a", 40) + "\n\nm", "tree " + strings.Repeat("a", 40) + "\nparent zz\n\n"} {
		if c, err := gitobject.ParseCommit([]byte(bad)); err == nil {
			t.Errorf("%q: got %+v, want an error", bad, c)
		}
	}
}

func FuzzReadPack(f *testing.F) {
	pack, err := gitobject.EncodePack(gitobject.SHA1, []gitobject.Object{gitobject.New(gitobject.SHA1, gitobject.TreeType, nil), gitobject.New(gitobject.SHA1, gitobject.BlobType, []byte("x"))})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(pack)
	f.Add([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x01\x65\x01"))
	f.Fuzz(func(t *testing.T, data []byte) {
		objects, err := gitobject.ReadPack(gitobject.SHA1, bytes.NewReader(data), gitobject.PackLimits{Objects: 100, Bytes: 1 << 20})
		if err == nil && len(objects) > 100 {
			t.Errorf("%d objects beyond the limit", len(objects))
		}
	})
}
