"""Reads and changes the attention of a model while it runs.

    with Instrument(model, observers=[look]) as instrument:
        model(input_ids=..., attention_mask=...)

Inside the context every layer's queries, keys, values and probabilities pass to the observers as a
`LayerView`, once the layer's output projection has run. Leaving it restores the attention
implementation and removes all hooks. Families that do not use transformers' attention registry are
read through their own maps (`families.eager`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import torch
import transformers
from torch import nn

from headscope.errors import HeadscopeError, ModelError
from headscope.model.attention import AttentionCall, listening
from headscope.model.batch import Batch
from headscope.model.decoder_stack import DECODER, ReadsByDecoder
from headscope.model.families.eager import maps_returned, read_eagerly, same_values
from headscope.model.families.sites import (
    Site,
    find_sites,
    refuse_not_whole,
    registered,
    unlisted_site,
)
from headscope.model.lags import Diagonals
from headscope.model.layer import LayerInput, LayerView
from headscope.model.long_layer import LongLayerView

if TYPE_CHECKING:
    from transformers import PreTrainedModel

__all__ = ["AttentionCall", "Instrument", "Intervention", "LayerView", "Observer"]

Observer = Callable[[LayerView], None]
Intervention = Callable[[AttentionCall], None]


class Reversible:
    """A context that is opened in steps; closing it undoes each of them, whatever happens inside.

    A subclass defines `_open`, which takes the steps, and may define `_forget`, which drops what
    was collected inside.
    """

    _close: ExitStack | None = None

    def _open(self, stack: ExitStack) -> None:
        """Enter contexts of `stack`, and give it callbacks; on an error all are closed at once."""
        raise NotImplementedError

    def _forget(self) -> None:
        """Drop what was collected inside the context."""

    def __enter__(self) -> Self:
        if self._close is not None:
            name = type(self).__name__
            raise HeadscopeError(f"this {name} is already open; make a second one to nest")
        with ExitStack() as stack:
            self._open(stack)
            self._close = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        close, self._close = self._close, None
        self._forget()
        if close is not None:
            close.__exit__(kind, error, trace)


class Instrument(Reversible):
    """Reads, and on request changes, every attention layer of a model while the context is open.

    Instruments may be nested: the interventions of the outer one come first, and all observers see
    what is left in the end.

    model           any transformers model on the attention registry, or one that returns its maps
    observers       called with a LayerView for every layer of every forward pass, in order
    interventions   called with an AttentionCall before the values are mixed; may change it. Of a
                    network that is read by its decoder, with its self-attention alone
    stacks          which attention to show: "encoder", "decoder", "cross", or of two towers side by
                    side their names, "text" and "vision"; None: all
    whole           inputs of more tokens are read without whole maps, as a `LongLayerView`, where
                    the family is on the registry; None: whole maps of every input
    raises          ModelError if one of the stacks has no map from each token to each token

    long_reading    set before a forward pass of long inputs: their batch, whether norms of all
                    heads together and which diagonals will be asked for; see `LongLayerView.ask`
    """

    def __init__(
        self,
        model: PreTrainedModel,
        *,
        observers: Sequence[Observer] = (),
        interventions: Sequence[Intervention] = (),
        stacks: Sequence[str] | None = None,
        whole: int | None = None,
    ) -> None:
        self.model, self.observers, self.interventions = model, observers, interventions
        self.whole = whole
        self.stacks = None if stacks is None else frozenset(stacks)
        refuse_not_whole(model, self.stacks)
        self.sites = find_sites(model)
        self._of_decoder = isinstance(model, ReadsByDecoder)
        self.fallback = not registered(model)
        if self.fallback and interventions:
            raise ModelError(
                f"{type(model).__name__} computes attention outside transformers' registry: "
                "it can be read, not changed; use a model on the registry"
            )
        self._site_of: dict[nn.Module, Site | None] = {s.attention: s for s in self.sites}
        self._running: list[nn.Module] = []
        self.long_reading: tuple[Batch, bool, Diagonals | None] | None = None
        self._now: tuple[Site, int] | None = None
        self._view: LayerView | None = None
        self._calls: dict[str, int] = {}
        self._tokens: dict[str, int] = {}
        self._called: set[nn.Module] = set()
        self._residual: dict[nn.Module, torch.Tensor] = {}
        self._given: dict[nn.Module, LayerInput] = {}
        self._pending: dict[nn.Module, tuple[LayerView, list[torch.Tensor]]] = {}
        self._projections: dict[nn.Module, tuple[torch.Tensor, torch.Tensor]] = {}

    def _open(self, stack: ExitStack) -> None:
        keep = stack.callback
        for module in self.model.modules():
            if isinstance(module, transformers.PreTrainedModel):  # an encoder may be run by itself
                keep(module.register_forward_pre_hook(self._begin).remove)
                keep(module.register_forward_hook(self._end, always_call=True).remove)
        for site in self.sites:
            if site.residual is not None:
                hook = partial(self._keep_residual, site)
                keep(site.residual.register_forward_pre_hook(hook, with_kwargs=True).remove)
            if site.block is not None:
                hook = partial(self._keep_given, site)
                keep(site.block.register_forward_pre_hook(hook, with_kwargs=True).remove)
            if site.projection is not None:
                projected = partial(self._projected, site)
                keep(site.projection.register_forward_hook(projected).remove)
        if eager := [site for site in self.sites if site.eager]:
            stack.enter_context(read_eagerly(self.model, eager, self._take_eager))
        if not self.fallback:
            stack.enter_context(listening(self.model, self._before, whole=self.whole))

    def _forget(self) -> None:
        self._running.clear()
        self._forget_pass()

    def _forget_pass(self) -> None:
        self._called.clear()
        for kept in (self._calls, self._tokens, self._residual, self._given):
            kept.clear()
        for waiting in (self._pending, self._projections):
            waiting.clear()

    def _begin(self, module: nn.Module, _args: Any) -> None:
        if not self._running:
            self._forget_pass()
        self._running.append(module)

    def _end(self, module: nn.Module, _args: Any, output: Any) -> None:
        """After the outermost model: nothing may have been missed; after an error: clean up."""
        if module in self._running:
            del self._running[self._running.index(module) :]
        if self._running:
            return
        try:
            if output is not None:  # None: the forward pass raised
                for view, _ in self._pending.values():  # their projection was never run
                    view.plain_projection = False
                    self._show(view, None)
                self._check_all_seen(module, output)
        finally:
            self._forget_pass()

    def _check_all_seen(self, ran: nn.Module, output: Any) -> None:
        returned = maps_returned(output) if self.fallback else None
        if returned is not None and returned != (seen := sum(self._calls.values())):
            raise ModelError(
                f"{type(ran).__name__} returned {returned} attention maps, and {seen} were found "
                "where they are computed; wanted all of them: please report this model"
            )
        inside = set(ran.modules())
        sites = [site for site in self.sites if site.attention in inside]
        if self._calls:
            # Training may drop whole layers; a stack that was not called at all was not run.
            sites = [s for s in sites if s.listed and s.stack in self._calls and not ran.training]
        elif ran is not self.model and not sites:
            return  # a part without attention
        missed = [site.path for site in sites if site.attention not in self._called]
        if missed or not self._calls:
            reason = "its attention cannot be read; please report this model"
            if not missed:
                reason = "no layer of it shows attention; wanted layers that attend to tokens"
            raise ModelError(
                f"{type(ran).__name__} ran without calling the registered attention function "
                f"(in {', '.join(missed[:3]) or 'any module'}): {reason}"
            )

    def _keep_residual(self, site: Site, _module: nn.Module, args: Any, kwargs: Any) -> None:
        stream = args[0] if args else kwargs["hidden_states"]
        self._residual[site.attention] = stream.detach()

    def _keep_given(self, site: Site, block: nn.Module, args: Any, kwargs: Any) -> None:
        inputs = LayerInput(self.model, block, detached(args), detached(kwargs))
        self._given[site.attention] = inputs

    def _projected(self, site: Site, _module: nn.Module, args: Any, output: torch.Tensor) -> None:
        projection = (args[0].detach(), output.detach())
        if "projection" in site.swapped:
            projection = projection[0].transpose(0, 1), projection[1].transpose(0, 1)
        if site.attention in self._pending:
            self._finish(*self._pending.pop(site.attention), *projection)
        elif site.eager:  # it shows its map after the projection has run
            self._projections[site.attention] = projection

    def _before(self, call: AttentionCall) -> None:
        """Number the layer and apply the interventions."""
        if call.module not in self._site_of:
            self._site_of[call.module] = unlisted_site(self.model, call.module)
        site = self._site_of[call.module]  # None: of no module of ours
        self._now = None if site is None else (site, self._number(site))
        if self._now is not None:
            call.site, call.layer = self._now
            if not self._of_decoder or call.site.stack == DECODER:
                for intervene in self.interventions:
                    intervene(call)
            self._view = self._view_of(call) if call.long is not None else None
            if isinstance(self._view, LongLayerView) and self.long_reading is not None:
                batch, together, diagonals = self.long_reading
                self._view.ask(batch, together=together, diagonals=diagonals)
            call.then.append(self._after)

    def _after(self, call: AttentionCall, mixed: torch.Tensor) -> None:
        """Keep what was seen of the layer until its output projection has run."""
        view, self._view = self._view or self._view_of(call), None
        self._took(view, [mixed.detach()])

    def _view_of(self, call: AttentionCall) -> LayerView:
        site, layer = call.site, call.layer
        kind: type[LayerView] = LayerView
        a: Any
        if call.long is not None:
            kind, a, k, v = LongLayerView, call.long, call.key.detach(), call.value.detach()
        else:
            a, k, v = call.attention.detach(), call.keys.detach(), call.values.detach()
        sinks, q = "s_aux" in call.options, call.query.detach()
        return kind(
            layer,
            site.stack,
            a,
            None if sinks else q,
            None if sinks else k,
            v,
            site,
            scaling=float(call.scaling),
            softcap=call.options.get("softcap"),
            position_bias=call.position_bias,
            mask=call.mask,
            sinks=sinks,
        )

    def _number(self, site: Site) -> int:
        """The layer's number within its stack, by order of calls (ALBERT reuses one module)."""
        if not self._running:
            raise HeadscopeError(
                f"{site.path} was run outside a forward pass of the model (by itself, or again in "
                "the backward pass); run the whole model, without gradient checkpointing"
            )
        layer = self._calls.get(site.stack, 0)
        self._calls[site.stack] = layer + 1
        self._called.add(site.attention)
        return layer

    def _took(self, view: LayerView, mixed: list[torch.Tensor]) -> None:
        """Keep a layer until its output projection has run; show it at once if there is none.

        mixed  see `_finish`
        """
        module = view.site.attention
        view.residual = self._residual.pop(module, None)
        view.given = self._given.pop(module, None)
        if view.site.projection is None:
            view.values = None if view.site.eager else view.values
            self._show(view, None)
        elif module in self._projections:
            self._finish(view, mixed, *self._projections.pop(module))
        else:
            self._pending[module] = (view, mixed)

    def _finish(
        self,
        view: LayerView,
        mixed: list[torch.Tensor],
        projected: torch.Tensor,
        output: torch.Tensor,
    ) -> None:
        """Check the input of the output projection, and show the layer.

        mixed  [example, query, head, dim] the expected input; of a layer that is read from its
               own map instead, [example, head, key, dim] each: what its values may be
        """
        if view.site.eager:
            view.values = same_values(view.attention, mixed, projected)
            view.plain_projection = view.values is not None
        else:
            view.plain_projection = _same(projected, mixed[0])
        self._show(view, output)

    def _take_eager(self, site: Site, attention: torch.Tensor, values: list[torch.Tensor]) -> None:
        seen, tokens = attention.detach(), attention.shape[3]
        if site.stack != "cross" and self._tokens.setdefault(site.stack, tokens) != tokens:
            raise ModelError(
                f"{site.path} ({type(site.attention).__name__}) attends to {tokens} tokens, "
                f"the layers before to {self._tokens[site.stack]}; wanted the same in all layers"
            )
        view = LayerView(self._number(site), site.stack, seen, None, None, None, site)
        self._took(view, [value.detach() for value in values])

    def _show(self, view: LayerView, output: torch.Tensor | None) -> None:
        if output is not None:
            examples, _, queries, _ = view.shape
            view.output = output.reshape(examples, -1, output.shape[-1])[
                :, :queries
            ]  # without filled up windows
        if self.stacks is None or view.stack in self.stacks:
            with torch.no_grad():
                for observer in self.observers:
                    observer(view)


def detached(value: Any) -> Any:
    """The same without a history of gradients, inside tuples, lists and dicts too."""
    if isinstance(value, torch.Tensor):
        return value.detach()
    if isinstance(value, dict):
        return {key: detached(one) for key, one in value.items()}
    if type(value) in (tuple, list):
        return type(value)(map(detached, value))
    return value


def _same(projected: torch.Tensor, mixed: torch.Tensor) -> bool:
    """Whether a projection reads the mixed values unchanged: no gate or norm between."""
    if projected.numel() != mixed.numel():
        return False
    return projected.data_ptr() == mixed.data_ptr() or torch.equal(
        projected.reshape(-1), mixed.reshape(-1).to(projected.dtype)
    )
