use super::super::*;
use super::*;

#[test]
fn the_published_transactions_give_the_published_offsets() {
    let mut states = ProducerStates::new(103);
    client(&mut states, &txn(1, 0, 0, 2, 103));
    assert_eq!(states.last_stable_offset(0, 105), 103);
    client(&mut states, &txn(2, 0, 0, 1, 105));
    let outcomes = append(&mut states, &end(1, 0, 106, true), Origin::Coordinator).unwrap().1;
    let aborted =
        CompletedTxn { producer_id: 1, first_offset: 103, last_offset: 106, aborted: true };
    assert_eq!(outcomes, [TxnOutcome { txn: aborted, last_stable_offset: 105 }]);
    states.on_high_watermark(106);
    assert_eq!(states.last_stable_offset(0, 106), 103);
    states.on_high_watermark(107);
    assert_eq!(states.last_stable_offset(0, 107), 105);
    let outcomes = append(&mut states, &end(2, 0, 107, false), Origin::Coordinator).unwrap().1;
    assert_eq!(outcomes[0].last_stable_offset, 108);
    assert!(!outcomes[0].txn.aborted);
    states.on_high_watermark(108);
    assert_eq!(states.last_stable_offset(0, 108), 108);
    assert_eq!(states.first_unstable_offset(), None);
}

#[test]
fn a_transaction_is_left_only_by_a_marker() {
    let mut states = ProducerStates::new(0);
    client(&mut states, &txn(1, 0, 0, 1, 0));
    for origin in [Origin::Client, Origin::Replication] {
        assert_eq!(
            refused(&states, &data(1, 0, 1, 1, 1), origin),
            "INVALID_TXN_STATE: producer 1 writes outside of its transaction at offset 1, which is \
             open since offset 0"
        );
    }
    client(&mut states, &txn(1, 0, 1, 1, 1));
    assert_eq!(states.ongoing().collect::<Vec<_>>(), [(0, 1)]);
    append(&mut states, &end(1, 0, 2, false), Origin::Coordinator).unwrap();
    assert_eq!(states.ongoing().len(), 0);
    assert_eq!(states.unreplicated().collect::<Vec<_>>(), [(0, 1)]);
    client(&mut states, &data(1, 0, 2, 1, 3));
}

#[test]
fn a_marker_without_data_completes_nothing() {
    let mut states = ProducerStates::new(0);
    let (_, outcomes) = append(&mut states, &end(1, 4, 0, true), Origin::Coordinator).unwrap();
    assert!(outcomes.is_empty());
    assert_eq!(states.get(1).unwrap().producer_epoch, 4);
    let emptied = BatchFacts { marker: None, ..end(2, 0, 1, true) };
    assert_eq!(states.replay(&emptied).unwrap(), None);
    assert!(states.get(2).is_none());
    assert_eq!(states.map_end_offset(), 2);
}

#[test]
fn old_epochs_of_producers_and_coordinators_are_fenced_on_a_leader() {
    let mut states = ProducerStates::new(0);
    let with = |epoch, coordinator_epoch| {
        end_with(end(1, epoch, 5, true), |marker| marker.coordinator_epoch = coordinator_epoch)
    };
    append(&mut states, &with(3, 9), Origin::Coordinator).unwrap();
    assert_eq!(
        refused(&states, &with(3, 8), Origin::Coordinator),
        "TRANSACTION_COORDINATOR_FENCED: coordinator epoch 8 of the marker for producer 1 at \
         offset 5 is below the epoch known, 9"
    );
    assert!(refused(&states, &with(2, 9), Origin::Coordinator).starts_with("INVALID_PRODUCER_EP"));
    assert!(states.analyze(&with(3, 9), Origin::Coordinator).is_ok());
    append(&mut states, &with(2, 8), Origin::Replication).unwrap();
    let state = states.get(1).unwrap();
    assert_eq!((state.producer_epoch, state.coordinator_epoch), (2, 8));
}

#[test]
fn version_2_markers_raise_the_epoch() {
    let strict = |epoch, offset| {
        end_with(end(1, epoch, offset, false), |marker| marker.transaction_version = 2)
    };
    let mut states = ProducerStates::new(0);
    client(&mut states, &txn(1, 3, 0, 1, 0));
    assert_eq!(
        refused(&states, &strict(3, 1), Origin::Coordinator),
        "INVALID_PRODUCER_EPOCH: epoch 3 of producer 1 at offset 1 must be above the epoch of the \
         transaction, 3"
    );
    assert!(states.analyze(&strict(3, 1), Origin::Replication).is_ok());
    append(&mut states, &strict(4, 1), Origin::Coordinator).unwrap();
    append(&mut states, &strict(4, 2), Origin::Coordinator).unwrap();
    assert!(states.analyze(&strict(3, 3), Origin::Coordinator).is_err());
    client(&mut states, &txn(1, i16::MAX, 0, 1, 3));
    assert!(states.analyze(&strict(i16::MAX, 4), Origin::Coordinator).is_ok());
}

#[test]
fn transactions_that_begin_and_end_in_one_append_are_seen_in_order() {
    let mut states = ProducerStates::new(0);
    let mut changes = states.begin(Origin::Replication);
    for facts in [
        txn(1, 0, 0, 1, 0),
        txn(2, 0, 0, 1, 1),
        end(1, 0, 2, true),
        txn(1, 0, 1, 1, 3),
        end(2, 0, 4, true),
    ] {
        states.add(&mut changes, &facts).unwrap();
    }
    assert_eq!(changes.completed().len(), 2);
    let outcomes = states.commit(changes);
    assert_eq!(outcomes.iter().map(|o| o.last_stable_offset).collect::<Vec<_>>(), [1, 3]);
    assert_eq!(states.ongoing().collect::<Vec<_>>(), [(3, 1)]);
    assert_eq!(states.unreplicated().collect::<Vec<_>>(), [(0, 1), (1, 2)]);
    assert_eq!(states.first_unstable_offset(), Some(0));
}

#[test]
fn the_first_unstable_offset_is_not_below_the_log_start() {
    let mut states = ProducerStates::new(0);
    client(&mut states, &txn(1, 0, 0, 5, 0));
    states.on_log_start(3);
    assert_eq!(states.last_stable_offset(3, 5), 3);
    assert_eq!(states.map_end_offset(), 5);
    states.on_log_start(8);
    assert_eq!(states.map_end_offset(), 8);
    assert!(states.get(1).is_some());
    client(&mut states, &txn(2, 0, 0, 1, 8));
    append(&mut states, &end(2, 0, 9, true), Origin::Coordinator).unwrap();
    states.on_log_start(9);
    assert_eq!(states.unreplicated().len(), 1);
    states.on_log_start(10);
    assert_eq!(states.unreplicated().len(), 0);
}

#[test]
fn a_transaction_is_late_after_its_longest_time_and_five_minutes() {
    let mut states = ProducerStates::new(0);
    assert!(!states.has_late_transaction(i64::MAX, 0));
    client(&mut states, &txn(1, 0, 0, 1, 0));
    assert!(!states.has_late_transaction(T0 + 1000 + 300_000, 1000));
    assert!(states.has_late_transaction(T0 + 1001 + 300_000, 1000));
}
