package activities

import (
	"context"
	"fmt"
	"testing"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// A call that a stopping worker interrupted is repeated only if every version of
// the module bears it: which one runs next is not known.
func TestEveryVersionMustBearRepeats(t *testing.T) {
	readonly, plain := apcore.Annotations{Readonly: true}, apcore.Annotations{}
	for _, test := range []struct {
		versions []apcore.Annotations
		want     bool
	}{
		{nil, false}, {[]apcore.Annotations{readonly}, true}, {[]apcore.Annotations{plain}, false},
		{[]apcore.Annotations{readonly, readonly}, true}, {[]apcore.Annotations{plain, readonly}, false}, {[]apcore.Annotations{readonly, plain}, false},
	} {
		registry := apcore.NewRegistry(apcore.RegistryOptions{})
		for i, annotations := range test.versions {
			err := apcore.Register(registry, "a.b", func(context.Context, struct{}) (struct{}, error) { return struct{}{}, nil },
				apcore.Spec{Description: "Has versions", Version: fmt.Sprintf("%d.0.0", i+1), Annotations: annotations})
			if err != nil {
				t.Fatal(err)
			}
		}
		executor, err := apcore.NewExecutor(registry, apcore.ExecutorOptions{})
		if err != nil {
			t.Fatal(err)
		}
		hosted, err := New(executor, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := hosted.repeats("a.b"); got != test.want {
			t.Errorf("%+v: %t, want %t", test.versions, got, test.want)
		}
	}
}
