package apcore

// effective is what holds for a call now: what was registered, and on top what
// the live instance says by now about approval and destruction. false in one
// place never cancels true in another (apcore D-96, D-125).
func (e *registration) effective() (a Annotations, err error) {
	a = e.descriptor.Annotations
	defer recoverTo(&err, "Annotations")
	switch live := e.module.(type) {
	case *FuncModule: // never changes
	case Annotated:
		own := live.Annotations()
		a.RequiresApproval = a.RequiresApproval || own.RequiresApproval
		a.Destructive = a.Destructive || own.Destructive
	case AnnotatedMap:
		own := live.Annotations()
		a.RequiresApproval = a.RequiresApproval || own["requires_approval"] == true
		a.Destructive = a.Destructive || own["destructive"] == true
	}
	return a, nil
}
