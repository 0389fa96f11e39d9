package watchcommit

import (
	"context"
	"fmt"

	"github.com/tidemark-dev/tidemark/shared/gitauth"
	"github.com/tidemark-dev/tidemark/shared/gitcommit"
	"github.com/tidemark-dev/tidemark/shared/giturl"
	"github.com/tidemark-dev/tidemark/shared/kube"
)

// open prepares the repository with the credentials of the first target whose Secret can be read and is not refused.
func (f *Function) open(ctx context.Context, b *branch) error {
	var failed error
	for _, t := range b.targets {
		if t.refused != nil {
			continue
		}
		repository := t.spec.Spec.Repository
		endpoint, err := giturl.Parse(repository.URL)
		if err != nil {
			return err
		}
		var credentials *gitauth.Credentials
		if ref := repository.SecretRef; ref != nil {
			data, err := f.cluster.SecretData(ctx, *ref)
			if err != nil {
				err = ofCluster(err)
			} else {
				credentials, err = gitauth.FromSecret(endpoint, data)
				if err != nil {
					err = fmt.Errorf("%w: Secret %s/%s: %w", kube.ErrSecretNotReadable, ref.Namespace, ref.Name, err)
				}
			}
			if err != nil {
				t.problem = problemOf(ctx, err)
				failed = err
				continue
			}
		}
		b.account = t
		b.repo, err = gitcommit.Open(gitcommit.Remote{URL: repository.URL, Credentials: credentials}, gitcommit.Options{
			Pool: f.pool, Cache: f.store.ObjectCache(), Tips: f.store.TipMemory(), Forgetful: f.forgetful,
		})
		return err
	}
	return failed
}

// tryOthers notes that the git server refuses the credentials in use, and says whether another target of the branch has
// other ones to try.
func (d *drain) tryOthers(ctx context.Context, err error) bool {
	problem, account := problemOf(ctx, err), d.branch.account
	if account == nil || problem == nil || problem.Reason != kube.ReasonCredentialsRefused {
		return false
	}
	others := false
	for _, t := range d.branch.targets {
		if t.credentials() == account.credentials() {
			t.refused = &kube.Problem{Reason: problem.Reason, Message: t.credentials() + ": " + problem.Message}
		}
		if t.refused != nil {
			t.problem = t.refused
		}
		others = others || t.refused == nil && (t.problem == nil || t.problem.Reason != kube.ReasonSecretNotReadable)
	}
	return others
}

// credentials are what the target opens its repository with, for people.
func (t *target) credentials() string {
	if ref := t.spec.Spec.Repository.SecretRef; ref != nil {
		return "Secret " + ref.Namespace + "/" + ref.Name
	}
	return "no Secret"
}

// sayRefused gives the targets whose credentials are refused their problem, though their files are written.
func (b *branch) sayRefused() {
	for _, t := range b.targets {
		if t.refused != nil {
			t.problem = &kube.Problem{
				Reason:  t.refused.Reason,
				Message: fmt.Sprintf("%s. The branch is written with the credentials of GitTarget %s meanwhile", t.refused.Message, b.account.spec.Name),
			}
		}
	}
}
