package settings

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Help is what Load returns in a process that was started with -help: no failure, but nothing to run either.
type Help struct {
	// Table has one line a setting: name, type, default, description.
	Table string
}

func (h *Help) Error() string { return "-help was asked for" }

// HelpWanted reports whether this process was started with -help.
func HelpWanted() bool { return helpWanted(os.Args) }

func helpWanted(args []string) bool {
	return len(args) > 1 && slices.ContainsFunc(args[1:], func(a string) bool { return a == "-help" || a == "--help" || a == "-h" })
}

// Table returns the settings of spec as -help prints them.
func Table(spec any) (string, error) {
	vars, err := variables(spec)
	if err != nil {
		return "", err
	}
	return table(vars), nil
}

func table(vars []variable) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "VARIABLE\tTYPE\tDEFAULT\tMEANING")
	for _, v := range vars {
		def := v.def
		if v.required {
			def = "required"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", v.name, v.kind(), def, v.desc)
	}
	for _, v := range vars {
		if v.secret {
			fmt.Fprintf(w, "%s\ttext\t\t%s, read from this file\n", v.name+fileSuffix, v.name)
			fmt.Fprintf(w, "%s\ttext\t\t%s, read through the AWS Parameters and Secrets extension\n", v.name+arnSuffix, v.name)
		}
	}
	w.Flush()
	return b.String()
}

func (v variable) kind() string {
	switch v.field.Interface().(type) {
	case time.Duration:
		return "duration"
	case Secret:
		return "secret"
	}
	if v.secret {
		return "secret"
	}
	switch v.rule() {
	case "true or false":
		return "bool"
	case "a whole number", "a whole number, not negative", "a number":
		return "number"
	}
	if k := v.field.Kind().String(); k == "slice" {
		return "list"
	}
	return "text"
}
