package temporal_test

import (
	"context"
	"testing"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal"
)

// Of a module with several versions the most cautious one decides how often a
// call may be made: which version runs is the worker's choice.
func TestCatalogOfSeveralVersions(t *testing.T) {
	readonly, idempotent, plain := apcore.Annotations{Readonly: true}, apcore.Annotations{Idempotent: true}, apcore.Annotations{}
	for name, test := range map[string]struct {
		versions []apcore.Annotations
		want     durable.Class
	}{
		"one":               {[]apcore.Annotations{readonly}, durable.ClassSafe},
		"alike":             {[]apcore.Annotations{readonly, readonly}, durable.ClassSafe},
		"older idempotent":  {[]apcore.Annotations{idempotent, readonly}, durable.ClassIdempotent},
		"newer idempotent":  {[]apcore.Annotations{readonly, idempotent}, durable.ClassIdempotent},
		"older at most one": {[]apcore.Annotations{plain, readonly, idempotent}, durable.ClassAtMostOnce},
	} {
		t.Run(name, func(t *testing.T) {
			registry := apcore.NewRegistry(apcore.RegistryOptions{})
			for i, annotations := range test.versions {
				err := apcore.Register(registry, "a.b", func(context.Context, struct{}) (struct{}, error) { return struct{}{}, nil },
					apcore.Spec{Description: "Has versions", Version: []string{"1.0.0", "2.0.0", "3.0.0"}[i], Annotations: annotations})
				if err != nil {
					t.Fatal(err)
				}
			}
			executor, err := apcore.NewExecutor(registry, apcore.ExecutorOptions{})
			if err != nil {
				t.Fatal(err)
			}
			catalog, err := temporal.NewCatalog(executor)
			if err != nil {
				t.Fatal(err)
			}
			if got := catalog.Policy("a.b").Class; got != test.want {
				t.Errorf("class %v, want %v", got, test.want)
			}
		})
	}
}
