package activities

import (
	"context"
	"sync"
	"time"

	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"

	"github.com/apcore-temporal/apcore-temporal/durable"
)

// listing knows whether the namespace has the search attributes of approvals. A
// yes is kept, a no is asked again after a while: somebody may register them
// while the worker runs.
type listing struct {
	client client.Client

	mu    sync.Mutex
	yes   bool
	asked time.Time
}

const (
	askAgainAfter = time.Minute
	askTimeout    = 2 * time.Second
)

func (l *listing) ready(ctx context.Context) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.yes || (!l.asked.IsZero() && time.Since(l.asked) < askAgainAfter) {
		return l.yes
	}
	l.asked = time.Now()
	l.yes = l.registered(ctx, activity.GetInfo(ctx).Namespace)
	return l.yes
}

// registered asks the server; a server that gives no answer counts as a no, for
// an attribute that is not registered would fail the run.
func (l *listing) registered(ctx context.Context, namespace string) bool {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	answer, err := l.client.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: namespace})
	if err != nil {
		return false
	}
	for _, name := range []string{durable.SearchPendingApprovals, durable.SearchState, durable.SearchModuleID, durable.SearchApproverGroup} {
		if _, ok := answer.GetCustomAttributes()[name]; !ok {
			return false
		}
	}
	return true
}
