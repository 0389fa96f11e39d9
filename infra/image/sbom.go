package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"time"
)

// The parts of SPDX 2.3 that are used (https://spdx.github.io/spdx-spec/v2.3/).
type spdxDocument struct {
	SPDXVersion       string             `json:"spdxVersion"`
	DataLicense       string             `json:"dataLicense"`
	SPDXID            string             `json:"SPDXID"`
	Name              string             `json:"name"`
	DocumentNamespace string             `json:"documentNamespace"`
	CreationInfo      spdxCreation       `json:"creationInfo"`
	Packages          []spdxPackage      `json:"packages"`
	Relationships     []spdxRelationship `json:"relationships"`
}

type spdxCreation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type spdxPackage struct {
	Name             string          `json:"name"`
	SPDXID           string          `json:"SPDXID"`
	VersionInfo      string          `json:"versionInfo"`
	DownloadLocation string          `json:"downloadLocation"`
	FilesAnalyzed    bool            `json:"filesAnalyzed"`
	LicenseConcluded string          `json:"licenseConcluded"`
	LicenseDeclared  string          `json:"licenseDeclared"`
	CopyrightText    string          `json:"copyrightText"`
	PrimaryPurpose   string          `json:"primaryPackagePurpose,omitempty"`
	Checksums        []spdxChecksum  `json:"checksums,omitempty"`
	ExternalRefs     []spdxReference `json:"externalRefs,omitempty"`
	Comment          string          `json:"comment,omitempty"`
}

type spdxChecksum struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"checksumValue"`
}

type spdxReference struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type spdxRelationship struct {
	Element string `json:"spdxElementId"`
	Type    string `json:"relationshipType"`
	Related string `json:"relatedSpdxElement"`
}

// sbom writes OUT/FUNCTION-ARCH.spdx.json: the binary, the modules that its own build information names, and what lies
// beside it.
func (j *job) sbom(function, arch, binary string, beside ...*debug.Module) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return fmt.Errorf("read the build information: %w", err)
	}
	code, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(code)
	for _, m := range beside {
		if m != nil {
			info.Deps = append(info.Deps, m)
		}
	}
	doc := document(function, arch, hex.EncodeToString(sum[:]), info, j.created)
	out, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(j.out, function+"-"+arch+".spdx.json"), append(out, '\n'), 0o644)
}

func document(function, arch, sum string, info *debug.BuildInfo, created time.Time) spdxDocument {
	main := spdxPackage{
		Name: info.Path, SPDXID: spdxID(info.Path), VersionInfo: info.Main.Version, PrimaryPurpose: "APPLICATION",
		LicenseDeclared: license, Checksums: []spdxChecksum{{"SHA256", sum}},
	}
	doc := spdxDocument{
		SPDXVersion: "SPDX-2.3", DataLicense: "CC0-1.0", SPDXID: "SPDXRef-DOCUMENT",
		Name:              function + "-" + arch,
		DocumentNamespace: "https://github.com/tidemark-dev/tidemark/spdx/" + function + "-" + arch + "-" + sum,
		CreationInfo:      spdxCreation{created.Format(time.RFC3339), []string{"Tool: tidemark-image"}},
		Packages:          []spdxPackage{main.filled()},
		Relationships:     []spdxRelationship{{"SPDXRef-DOCUMENT", "DESCRIBES", main.SPDXID}},
	}
	// A module may be in the binary and beside it.
	named := map[string]bool{}
	modules := []*debug.Module{{Path: "stdlib", Version: info.GoVersion}}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		modules = append(modules, m)
	}
	for _, m := range modules {
		if named[m.Path] {
			continue
		}
		named[m.Path] = true
		p := spdxPackage{
			Name: m.Path, SPDXID: spdxID(m.Path), VersionInfo: m.Version, PrimaryPurpose: "LIBRARY", LicenseDeclared: "NOASSERTION",
			ExternalRefs: []spdxReference{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + m.Path + "@" + m.Version}},
		}
		if m.Sum != "" {
			p.Comment = "go.sum " + m.Sum
		}
		doc.Packages = append(doc.Packages, p.filled())
		doc.Relationships = append(doc.Relationships, spdxRelationship{main.SPDXID, "DEPENDS_ON", p.SPDXID})
	}
	return doc
}

// filled has the fields that SPDX wants even when nothing is known.
func (p spdxPackage) filled() spdxPackage {
	p.DownloadLocation, p.LicenseConcluded, p.CopyrightText = "NOASSERTION", "NOASSERTION", "NOASSERTION"
	return p
}

var notSPDX = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

// spdxID makes an identifier of a module's path; two paths may differ in a character it cannot hold, so their hash follows.
func spdxID(path string) string {
	sum := sha256.Sum256([]byte(path))
	return "SPDXRef-" + notSPDX.ReplaceAllString(path, "-") + "-" + hex.EncodeToString(sum[:4])
}
