package apcore

import "slices"

// RegisterStrategy makes a strategy available to single calls, see
// [Request]. The executor takes a copy; one of the same name is replaced. A nil
// strategy, an empty name and the name of the executor's own strategy fail with
// GENERAL_INVALID_INPUT.
func (e *Executor) RegisterStrategy(strategy *Strategy) error {
	switch {
	case strategy == nil:
		return NewError(CodeInvalidInput, "the strategy is nil")
	case strategy.name == "":
		return NewError(CodeInvalidInput, "a strategy needs a name to be registered: see Strategy.Named")
	case strategy.name == e.strategy.name:
		return NewError(CodeInvalidInput, "strategy %q is the executor's own and cannot be replaced: see Strategy.Named", strategy.name)
	}
	added := strategy.clone()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.strategies = append(slices.DeleteFunc(slices.Clone(e.strategies), func(s *Strategy) bool { return s.name == added.name }), added)
	return nil
}

// ListStrategies describes the executor's own strategy, then the registered ones
// in the order of their registration (§5.16).
func (e *Executor) ListStrategies() []StrategyInfo {
	e.mu.RLock()
	defer e.mu.RUnlock()
	infos := []StrategyInfo{e.strategy.Info()}
	for _, s := range e.strategies {
		infos = append(infos, s.Info())
	}
	return infos
}

// DescribePipeline describes the strategy that calls run through.
func (e *Executor) DescribePipeline() StrategyInfo { return e.strategy.Info() }

// DescribeStrategy describes the executor's own strategy or a registered one by
// its name; an empty name is the executor's own. Another name fails with
// STRATEGY_NOT_FOUND.
func (e *Executor) DescribeStrategy(name string) (StrategyInfo, error) {
	strategy, err := e.strategyNamed(name)
	if err != nil {
		return StrategyInfo{}, err
	}
	return strategy.Info(), nil
}

// CurrentStrategy returns a copy of the executor's own strategy.
func (e *Executor) CurrentStrategy() *Strategy { return e.strategy.clone() }

// strategyNamed finds a strategy; an empty name is the executor's own.
func (e *Executor) strategyNamed(name string) (*Strategy, error) {
	if name == "" || name == e.strategy.name {
		return e.strategy, nil
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	at := slices.IndexFunc(e.strategies, func(s *Strategy) bool { return s.name == name })
	if at < 0 {
		return nil, NewError(CodeStrategyNotFound, "no strategy %q is registered at this executor", name)
	}
	return e.strategies[at], nil
}

func strategyOr(given *Strategy) (*Strategy, error) {
	if given == nil {
		return NewStrategy(standardPreset)
	}
	return given.clone(), nil
}
