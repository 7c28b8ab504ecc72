//! What a network is: the engine under every model, over packed rows without padding.
