package who

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// Command asks one question on the command line and prints the answer:
//
//	who [-limit 20] RESOURCE [NAMESPACE/]NAME
func Command(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("who", flag.ContinueOnError)
	flags.SetOutput(out)
	limit := flags.Int("limit", defaultLimit, "how many changes to tell")
	flags.Usage = func() {
		fmt.Fprintln(out, "who [-limit 20] RESOURCE [NAMESPACE/]NAME, such as: who deployments.apps shop/web")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	if flags.NArg() != 2 {
		flags.Usage()
		return errors.New("a resource and an object are needed")
	}
	if *limit < 1 || *limit > maxLimit {
		return fmt.Errorf("-limit (%d) must be between 1 and %d", *limit, maxLimit)
	}
	namespace, name, namespaced := strings.Cut(flags.Arg(1), "/")
	if !namespaced {
		namespace, name = "", namespace
	}
	f, stop, err := fromEnv()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), f.cfg.Timeout)
	defer cancel()
	answer, err := f.answer(ctx, Question{Resource: flags.Arg(0), Namespace: namespace, Name: name}, *limit)
	if err = errors.Join(err, stop()); err != nil {
		return err
	}
	return answer.print(out)
}

// print writes the answer as a table. Names are quoted where they hold what a terminal would act on.
func (a *Answer) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TIME\tCHANGE\tAUTHOR\tEVIDENCE\tVERSION\tCOMMIT\tTARGET")
	if l := a.Live; l != nil && !l.Committed {
		fmt.Fprintf(w, "now\t(live)\t%s\t%s\t%s\t\t\n", person(l.Author, l.ImpersonatedBy), evidence(l.Class, l.Tier, l.Why), l.ResourceVersion)
	}
	for _, c := range a.Changes {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%.10s\t%s\n", c.Time.UTC().Format(time.RFC3339), c.Verb, person(c.Author, c.ImpersonatedBy), evidence(c.Class, c.Tier, c.Why), c.ResourceVersion, c.Commit, c.Target)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	switch {
	case len(a.Targets) == 0 && len(a.Changes) == 0:
		where := ""
		if a.Namespace != "" {
			where = " of namespace " + plain(a.Namespace)
		}
		fmt.Fprintf(out, "no target mirrors %s%s: is it the plural with its group, such as deployments.apps?\n", plain(a.Resource), where)
	case len(a.Changes) == 0 && len(a.Incomplete) == 0:
		fmt.Fprintf(out, "no change of it in the last commits of %s\n", strings.Join(a.Targets, ", "))
	}
	for _, what := range a.Incomplete {
		if _, err := fmt.Fprintln(out, "not asked:", what); err != nil {
			return err
		}
	}
	return nil
}

func person(name, through string) string {
	switch {
	case name == "":
		return "-"
	case through != "":
		return plain(name) + " (" + plain(through) + ")"
	}
	return plain(name)
}

func plain(name string) string {
	quoted := fmt.Sprintf("%q", name)
	if quoted == `"`+name+`"` {
		return name
	}
	return quoted
}

func evidence(class, tier, why string) string {
	if tier == "" {
		tier = why
	}
	if tier == "" {
		return class
	}
	return class + " " + tier
}
