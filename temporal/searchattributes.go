package temporal

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// MissingSearchAttributes returns the names, sorted, of the search attributes that
// a namespace lacks, and fails with CONFIG_INVALID when one is there with another
// type. An empty namespace means "default".
func MissingSearchAttributes(ctx context.Context, c client.Client, namespace string) ([]string, error) {
	answer, err := c.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{
		Namespace: cmp.Or(namespace, client.DefaultNamespace),
	})
	if err != nil {
		return nil, err
	}
	var missing, wrong []string
	wanted := SearchAttributes()
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		switch has, ok := answer.GetCustomAttributes()[name]; {
		case !ok:
			missing = append(missing, name)
		case has != wanted[name]:
			wrong = append(wrong, name+" is "+has.String()+" and should be "+wanted[name].String())
		}
	}
	if wrong != nil {
		return missing, apcore.NewError(apcore.CodeConfigInvalid, "search attributes of namespace %q have the wrong type: %s", namespace, strings.Join(wrong, "; "))
	}
	return missing, nil
}

// SetUpSearchAttributes registers the search attributes that a namespace lacks
// and returns their names, sorted. It may be repeated. Workers and stores may need
// some seconds to notice.
func SetUpSearchAttributes(ctx context.Context, c client.Client, namespace string) ([]string, error) {
	missing, err := MissingSearchAttributes(ctx, c, namespace)
	if err != nil || len(missing) == 0 {
		return nil, err
	}
	add := map[string]enumspb.IndexedValueType{}
	for _, name := range missing {
		add[name] = SearchAttributes()[name]
	}
	_, err = c.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
		Namespace: cmp.Or(namespace, client.DefaultNamespace), SearchAttributes: add,
	})
	var exists *serviceerror.AlreadyExists
	if errors.As(err, &exists) { // somebody else did, at the same time
		err = nil
	}
	return missing, err
}

// missingAttributes explains a refusal of the server by what the namespace lacks;
// nil if that is not the reason.
func (s *TaskStore) missingAttributes(ctx context.Context, cause error) error {
	var invalid *serviceerror.InvalidArgument
	if !errors.As(cause, &invalid) {
		return nil
	}
	missing, _ := MissingSearchAttributes(ctx, s.client, s.opts.Namespace) // without an answer it stays open
	if len(missing) == 0 {
		return nil
	}
	return refused(apcore.CodeConfigInvalid, "namespace %q lacks the search attributes %s, which task stores need", s.opts.Namespace, strings.Join(missing, ", ")).
		WithDetail("missing", missing).WithDetail("namespace", s.opts.Namespace).WithCause(cause).
		WithSuggestion("register them with temporal.SetUpSearchAttributes, or with apcore-temporal setup")
}
